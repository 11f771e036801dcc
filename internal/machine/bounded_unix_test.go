//go:build unix

package machine

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that nobody writes to must not be waited for.
func TestPipesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"compose.yaml": "include: [more.yaml]\nservices: {a: {image: x, ports: ['1:2'], env_file: [pipe.env]}}\n"})
	for _, name := range []string{".env", ".env.local", "more.yaml", "pipe.env", "script"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := DotenvNames(dir); got != nil {
		t.Errorf("got %+v", got)
	}
	if ports, err := PublishedPorts(t.Context(), dir); err != nil || len(ports) != 1 {
		t.Errorf("got %+v, %v", ports, err)
	}
	if path, err := (Search{Path: dir}).Find("script"); err != errNoProgram {
		t.Errorf("found %q, %v", path, err)
	}
}
