package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// patience is how long a slow server is given before something else is suspected.
var patience = []time.Duration{30 * time.Second, 60 * time.Second}

// waits is how long a client waits for a server to start: as its entry says, as the
// client's environment says, or by itself. 0 if that is not known.
func (d *Doctor) waits(c *clientconfig.Client, s *clientconfig.Server) time.Duration {
	if own := entryTime(s); own > 0 {
		return own
	}
	if c.WaitsVariable != "" {
		text, _ := d.ofClient(c).lookup(c.WaitsVariable)
		if n, err := strconv.Atoi(text); err == nil && n > 0 && time.Duration(n) < forever/time.Millisecond {
			return time.Duration(n) * time.Millisecond
		}
	}
	return time.Duration(c.Waits) * time.Second
}

const forever = 24 * time.Hour

// entryTime is how long the entry tells its client to wait, 0 if it says nothing.
func entryTime(s *clientconfig.Server) time.Duration {
	if s == nil {
		return 0
	}
	n, err := strconv.Atoi(s.Timeout.Text)
	if err != nil || n <= 0 {
		return 0
	}
	unit := time.Second
	if s.Client.Entry.TimeoutUnit == "ms" {
		unit = time.Millisecond
	}
	if time.Duration(n) > forever/unit {
		return forever
	}
	return time.Duration(n) * unit
}

// ownTime is the same as far as we would wait ourselves: a server that the client
// has patience with is not unresponsive.
func ownTime(s *clientconfig.Server) time.Duration {
	return min(entryTime(s), patience[len(patience)-1])
}

func timedOut(_ context.Context, t *treatment) []Fix {
	var fixes []Fix
	for _, wait := range patience {
		fixes = append(fixes, t.moreTime(wait))
	}
	does, run := "start the command by hand and look what it waits for; often something that it needs is not installed", ""
	switch {
	case t.server == nil: // who tested a command has just typed it
	case t.server.URL.Path != nil:
		does = "look whether the server behind the URL is up; it takes the connection and does not answer"
	default:
		run = quotedOn(t.os, secret.Args(argvOf(t.server))...)
	}
	return or(fixes, never("by_hand", run, "%s", does))
}

// moreTime lets the server have more time, and says so in the client's own field if
// it has one.
func (t *treatment) moreTime(wait time.Duration) Fix {
	e := &t.client.Entry
	whole := int(wait / time.Second)
	plain := Fix{Name: "wait_longer", Class: Auto, Does: fmt.Sprintf("look again with %d s", whole), wait: wait}
	if t.server != nil && t.server.Timeout.Text == "" && wait <= t.waits {
		plain.Does += fmt.Sprintf(", which %s waits by itself", t.client.Name)
		plain.Run = t.typed("mcpmend check", t.c.Name, "--timeout", fmt.Sprintf("%ds", whole))
		plain.within = true
		return plain
	}
	if t.server == nil || e.Timeout == "" || t.file == nil {
		return plain
	}
	written := whole
	if e.TimeoutUnit == "ms" {
		written *= 1000
	}
	if now, err := strconv.Atoi(t.server.Timeout.Text); err == nil && now >= written {
		return plain
	}
	edit := t.editServer(under(t.server.Path, e.Timeout), func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		if s.Timeout.Text != t.server.Timeout.Text {
			return nil, errOtherNow
		}
		return f.Set(under(s.Path, e.Timeout), written)
	})
	fixes := t.fix("startup_timeout", Auto, fmt.Sprintf("give the server %d s to start (%q)", whole, e.Timeout), edit)
	if fixes == nil {
		return plain
	}
	fixes[0].wait = wait
	return fixes[0]
}

// slowStart is a server that started later than its client waits. The first start of
// a package is the slowest, so it is looked at again before anything is changed.
func slowStart(_ context.Context, t *treatment) []Fix {
	fixes := []Fix{{Name: "wait_longer", Class: Auto, Does: "look again: only the first start may be slow"}}
	longest := patience[len(patience)-1]
	if t.client.Entry.Timeout == "" {
		return or(fixes, never("by_hand", "", "%s", tooLate(t.client, longest)))
	}
	for _, wait := range patience {
		if wait > t.waits {
			fixes = append(fixes, t.moreTime(wait))
		}
	}
	return fixes
}

// tooLate says what a person can do about a server that needs more time to start
// than its client gives it, and whose entry cannot ask for more.
func tooLate(c *clientconfig.Client, needs time.Duration) string {
	needed := fmt.Sprintf("the server starts, but needs up to %d s", int(needs/time.Second))
	if c.WaitsVariable != "" {
		return fmt.Sprintf("%s: start %s with %s=%d", needed, c.Name, c.WaitsVariable, needs.Milliseconds())
	}
	return fmt.Sprintf("%s, and an entry of %s cannot ask for that: install its package, so that it is not fetched at each start", needed, c.Name)
}

// inUse is something that another process holds. Nobody is ended for it.
func inUse(_ context.Context, t *treatment) []Fix {
	does := "close the other program that holds what the server needs"
	if port := t.f.pieces.Port; port != 0 {
		does = fmt.Sprintf("close the other program that listens on port %d, or give the server another port", port)
	}
	byHand := never("by_hand", "", "%s", does)
	flag := fault.RemedyIn(t.evidence()).Flag
	if flag == "" || t.server == nil || t.server.Command.Path == nil || slices.Contains(argvOf(t.server), flag) {
		return []Fix{byHand}
	}
	does = fmt.Sprintf("add %s, which the server itself recommends for running beside another copy", flag)
	return or(t.fix("isolated", Ask, does, t.setLine(append(argvOf(t.server), flag)...)), byHand)
}

// polluted is a server that writes more than messages to standard output; mcpmend
// run keeps the rest from the client.
func polluted(_ context.Context, t *treatment) []Fix {
	byHand := t.reportIt("report it to the makers of the server: its log belongs on standard error")
	if t.self == "" || t.server == nil || t.server.Command.Path == nil || t.server.Command.Text == t.self {
		return []Fix{byHand}
	}
	words := behind(t.self, t.server, t.withheld, t.variables)
	return or(t.fix("wrap", Ask, "put the server behind mcpmend run, which keeps other lines from the client", t.setLine(words...)), byHand)
}

func noTools(_ context.Context, t *treatment) []Fix {
	return []Fix{never("by_hand", "", "look in the server's documentation whether it wants a setting or a sign-in before it offers tools")}
}

func schemaRejected(_ context.Context, t *treatment) []Fix {
	return []Fix{t.reportIt("report it to the makers of the server, and switch the tool off in %s until then", t.client.Name)}
}

func tooManyTools(_ context.Context, t *treatment) []Fix {
	return []Fix{never("by_hand", "", "switch tools or servers off in %s that you do not need", t.client.Name)}
}

// reported is what nobody but the makers can mend, with what was seen to show them.
func reported(_ context.Context, t *treatment) []Fix {
	return or(t.stdioFlag(), t.reportIt("read what the server wrote last, and report it to its makers"))
}
