package upstream

type sseLink struct{ duplex }

func (x *exchange) fallBack() bool         { return false }
func (l *sseLink) close()                  {}
func (l *sseLink) closed() <-chan struct{} { return nil }
