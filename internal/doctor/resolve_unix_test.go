//go:build unix

package doctor

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAPipeIsNoProgramAndIsNotWaitedFor(t *testing.T) {
	d := ward(t, map[string]string{"PROJECT/.mcp.json": servers(`{"command": "./pipe"}`)}, func(context.Context, Start) Sighting { panic("started") })
	if err := syscall.Mkfifo(filepath.Join(d.System.Project, "pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if c := d.only(t, "s"); c.Cause == nil || c.Cause.ID != "resolve.permission_denied" {
		t.Errorf("%s, cause %+v", c.State, c.Cause)
	}
}
