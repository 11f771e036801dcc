package doctor

import "context"

// Check examines every server that which selects. each is told of every case as
// soon as it is closed, one at a time; it may be nil.
func (d *Doctor) Check(ctx context.Context, which Which, each func(*Case)) *Report {
	panic("not built yet")
}

// Test examines one server that stands in no file.
func (d *Doctor) Test(ctx context.Context, s Start) *Case {
	panic("not built yet")
}
