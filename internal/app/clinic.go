package app

import (
	"context"

	"github.com/mcpmend/mcpmend/internal/clinic"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// ServeClinic offers the doctor to an agent on standard input and output, until
// the agent is gone. version is ours.
func ServeClinic(ctx context.Context, o DoctorOptions, version string) error {
	d, err := NewDoctor(o)
	if err != nil {
		return err
	}
	practice := clinic.Of(d)
	known := Registry(o.Environ)
	practice.Configure = func(ctx context.Context, r doctor.ConfigureRequest) *doctor.Configuration {
		r.Registry = known
		return d.Configure(ctx, r)
	}
	return clinic.Serve(ctx, practice, version)
}
