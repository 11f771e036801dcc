package upstream

import "os"

// pipes are the three pipes between us and a child.
type pipes struct {
	in, out, err                *os.File // our ends
	childIn, childOut, childErr *os.File
}

func openPipes() (*pipes, error) {
	var p pipes
	var err error
	open := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	p.childIn, p.in = open()
	p.out, p.childOut = open()
	p.err, p.childErr = open()
	if err != nil {
		p.closeAll()
		return nil, err
	}
	return &p, nil
}

func (p *pipes) closeChildOutputs() {
	_ = p.childOut.Close()
	_ = p.childErr.Close()
}

func (p *pipes) closeAll() {
	for _, f := range []*os.File{p.in, p.out, p.err, p.childIn, p.childOut, p.childErr} {
		if f != nil {
			_ = f.Close()
		}
	}
}
