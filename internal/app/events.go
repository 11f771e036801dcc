package app

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/internal/guard"
)

// tellPerson writes what happens to a server for somebody who reads the log later:
// one line for each change, and no more than a few a second. What went well is
// not worth a line, except after what did not.
func tellPerson(log io.Writer) func(guard.Event) {
	var mu sync.Mutex
	var last time.Time
	return func(e guard.Event) {
		switch e.What {
		case "lost", "parked", "unresponsive", "recovered":
		case "not advised":
			fmt.Fprintf(log, "mcpmend: no corrected arguments for tool %q: %v\n", e.Tool, e.Fault)
			return
		default:
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if e.What == "lost" && e.Time.Sub(last) < 200*time.Millisecond {
			return
		}
		last = e.Time
		line := "mcpmend: server " + e.What
		if e.Fault != nil {
			line += ": " + e.Fault.Error()
			if e.Fault.Hint != "" {
				line += "\nmcpmend: hint: " + e.Fault.Hint
			}
		}
		fmt.Fprintln(log, line)
	}
}
