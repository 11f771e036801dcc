package machine

import (
	"errors"
	"io"
	"os"
)

var errNotPlain = errors.New("not a regular file, or too large")

// ReadPlain reads a file that OpenPlain opens and that is not larger than limit.
func ReadPlain(path string, limit int64) ([]byte, error) {
	f, err := OpenPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errNotPlain
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// OpenPlain opens a regular file for reading, and nothing else: a pipe would let us
// wait for ever, so it is looked at before it is opened and after.
func OpenPlain(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotPlain
	}
	f, err := os.OpenFile(path, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errNotPlain
	}
	return f, nil
}
