package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/bench/faults/oracle"
	"github.com/mcpmend/mcpmend/bench/faults/system"
)

// findSystems gathers the contestants. One that cannot be had is reported, not
// passed over.
func (b *bench) findSystems(ctx context.Context) error {
	all := []*system.System{system.Direct(b.self), system.Naive(b.self)}
	wanted := splitList(b.systemNames)
	mend := len(wanted) == 0 || slices.ContainsFunc(wanted, func(n string) bool { return strings.HasPrefix(n, "mcpmend") })
	if !mend {
		// Nobody asked for it.
	} else if err := b.buildMend(ctx); err != nil {
		b.absent = append(b.absent, "mcpmend: "+err.Error())
	} else {
		for _, trust := range []oracle.Trust{oracle.TrustNone, oracle.TrustReadOnly, oracle.TrustAll} {
			s, err := system.Mend(b.mendBinary, trust)
			if err != nil {
				b.absent = append(b.absent, err.Error())
				continue
			}
			all = append(all, s)
		}
	}
	if b.npm {
		more, err := system.InstallNPM(ctx)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	for _, c := range b.custom {
		name, line, ok := strings.Cut(c, "=")
		if !ok || line == "" {
			return fmt.Errorf("--sut %q: want NAME=command", c)
		}
		all = append(all, system.Custom(name, line))
	}
	for _, s := range all {
		if len(wanted) == 0 || slices.Contains(wanted, s.Name) {
			b.systems = append(b.systems, s)
		}
	}
	if len(b.systems) == 0 {
		return fmt.Errorf("no system to test (%s)", strings.Join(b.absent, "; "))
	}
	return nil
}

// buildMend compiles mcpmend from this repository unless a binary was named.
func (b *bench) buildMend(ctx context.Context) error {
	if b.mendBinary != "" {
		path, err := filepath.Abs(b.mendBinary)
		b.mendBinary = path
		return err
	}
	b.mendBinary = filepath.Join(b.dir, "mcpmend")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", b.mendBinary, "github.com/mcpmend/mcpmend/cmd/mcpmend").CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot be built here (use --mcpmend FILE): %s", strings.TrimSpace(string(out)))
	}
	return nil
}
