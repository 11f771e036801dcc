package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpmend/mcpmend/internal/cli"
)

// One server that hangs among twenty must hold up neither the others nor the end.
func TestOneHangingServerHoldsUpNobody(t *testing.T) {
	const servers, timeout = 20, 5 * time.Second
	var config strings.Builder
	config.WriteString(`{"mcpServers": {"hangs": {"command": "demo", "args": ["-hang"]}`)
	for i := range servers - 1 {
		fmt.Fprintf(&config, `, "s%d": {"command": "demo", "args": ["-number", "%d"]}`, i, i)
	}
	config.WriteString("}}")
	home, _ := homeWith(t, config.String())

	began := time.Now()
	told, tell := io.Pipe()
	lastHealthy := make(chan time.Duration)
	go func() {
		healthy, at := 0, time.Duration(0)
		for lines := bufio.NewScanner(told); lines.Scan(); {
			if strings.Contains(lines.Text(), "healthy") {
				if healthy++; healthy == servers-1 {
					at = time.Since(began)
				}
			}
		}
		lastHealthy <- at
	}()
	var out bytes.Buffer
	code := cli.Main(context.Background(), cli.Env{
		Args: []string{"check", "-v", "--timeout", timeout.String()}, Environ: append(os.Environ(), "HOME="+home), Stdout: &out, Stderr: tell,
	})
	took := time.Since(began)
	tell.Close()
	at := <-lastHealthy
	t.Logf("all healthy ones told after %v, done after %v", at, took)
	if code != cli.Unreachable {
		t.Errorf("exit code %d:\n%s", code, &out)
	}
	if at == 0 || at >= timeout {
		t.Errorf("the healthy servers were told of after %v, while one was still awaited", at)
	}
	if took > timeout+time.Second {
		t.Errorf("it took %v with a timeout of %v", took, timeout)
	}
}
