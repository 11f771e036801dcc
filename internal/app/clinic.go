package app

import (
	"context"

	"github.com/mcpmend/mcpmend/internal/clinic"
)

// ServeClinic offers the doctor to an agent on standard input and output, until
// the agent is gone. version is ours.
func ServeClinic(ctx context.Context, o DoctorOptions, version string) error {
	d, err := NewDoctor(o)
	if err != nil {
		return err
	}
	d.Served = true
	return clinic.Serve(ctx, clinic.Of(d), version)
}
