package main

import (
	"fmt"
	"slices"
	"strings"
)

// A check is one thing the suite looked at. The suite may use one id several
// times in a scenario, so the n-th use is part of its name.
type check struct {
	Scenario string
	ID       string
	N        int
}

func (c check) String() string {
	if c.N == 0 {
		return c.Scenario + "/" + c.ID
	}
	return fmt.Sprintf("%s/%s#%d", c.Scenario, c.ID, c.N+1)
}

// outcomes is what one run of the suite found.
type outcomes map[check]outcome

type outcome struct {
	Status string
	Text   string // why, if it did not pass
}

const (
	passed  = "SUCCESS"
	warned  = "WARNING"
	failed  = "FAILURE"
	skipped = "SKIPPED"
	absent  = "absent" // ours: the suite has no such check in this run
)

// add files the next outcome of a check. Entries with status INFO are the suite's
// log of what it sent and saw; their number depends on timing.
func (o outcomes) add(scenario, id string, out outcome) {
	if out.Status == "INFO" {
		return
	}
	c := check{Scenario: scenario, ID: id}
	for {
		if _, taken := o[c]; !taken {
			o[c] = out
			return
		}
		c.N++
	}
}

func (o outcomes) passes() (n int) {
	for _, out := range o {
		if out.Status == passed {
			n++
		}
	}
	return n
}

// A difference is a check that went one way directly and another way through.
type difference struct {
	Check   string `json:"check"`
	Direct  string `json:"direct"`
	Through string `json:"through"`
	Text    string `json:"text,omitempty"`
	// Better is set when only the way through passed. It is shown, but it is
	// no failure: a front may offer what the server itself does not.
	Better bool `json:"better,omitempty"`
	// Explained is why a difference is no failure either.
	Explained string `json:"explained,omitempty"`
}

// explained are the differences we want. Each has its reason, and there are few.
var explained = map[string]string{
	"server-sse-polling/incoming-sse-event": "the tool closes its own stream, and as the server keeps no events the reply is lost without a word; " +
		"through mcpmend the client is told, which the suite files as a failed call",
}

// compare names every check whose outcome differs.
func compare(direct, through outcomes) []difference {
	var all []check
	for c := range direct {
		all = append(all, c)
	}
	for c := range through {
		if _, both := direct[c]; !both {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b check) int { return strings.Compare(a.String(), b.String()) })

	var found []difference
	for _, c := range all {
		d, t := direct.look(c), through.look(c)
		if d.Status == t.Status {
			continue
		}
		found = append(found, difference{
			Check: c.String(), Direct: d.Status, Through: t.Status, Text: t.Text,
			Better: t.Status == passed, Explained: explained[c.String()],
		})
	}
	return found
}

func (o outcomes) look(c check) outcome {
	if out, ok := o[c]; ok {
		return out
	}
	return outcome{Status: absent}
}
