package upstream

import "github.com/mcpmend/mcpmend/fault"

func (s *Session) downshift(probed link) (dialect, *fault.Fault) {
	return nil, &fault.Fault{Evidence: fault.Evidence{Text: "not built yet"}}
}
