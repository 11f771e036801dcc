package doctor

import (
	"context"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func (d *Doctor) fixes(ctx context.Context, c *Case, f *Finding) []Fix { return nil }
func diffOf(before, after *clientconfig.File) Diff                     { return Diff{} }
