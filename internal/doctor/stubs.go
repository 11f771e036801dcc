package doctor

import (
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func (d *Doctor) start(s *clientconfig.Server, f *clientconfig.File) (Start, []Finding) {
	return Start{}, nil
}
func (d *Doctor) resolve(s *clientconfig.Server, st Start) []Finding              { return nil }
func (d *Doctor) needsApproval(s *clientconfig.Server, f *clientconfig.File) bool { return false }
func judgeTools(tools []Tool) []Finding                                           { return nil }
