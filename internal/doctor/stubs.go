package doctor

import (
	"context"
)

func (d *Doctor) fixes(ctx context.Context, c *Case, f *Finding) []Fix { return nil }
