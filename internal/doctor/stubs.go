package doctor

import (
	"context"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func (d *Doctor) resolve(s *clientconfig.Server, st Start) []Finding              { return nil }
func (d *Doctor) needsApproval(s *clientconfig.Server, f *clientconfig.File) bool { return false }
func (d *Doctor) fixes(ctx context.Context, c *Case, f *Finding) []Fix            { return nil }
func judgeTools(tools []Tool) []Finding                                           { return nil }
func diffOf(before, after *clientconfig.File) Diff                                { return DiffOf(before, after) }
