package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// judge closes a case that was probed: exit code, last words, the moment, the
// entry, what its client hands on and how long it waits are joined into one cause.
// given is the time that the server had.
func (d *Doctor) judge(c *Case, given time.Duration, saw *Sighting, found []Finding) {
	if saw.Fault == nil {
		if mismatch := wrongTransport(c, saw); mismatch != nil {
			c.settle(Dead, mismatch, found)
			return
		}
		found = append(found, noise(c, saw)...)
		found = append(found, d.tooSlow(c, saw)...)
		found = append(found, judgeTools(saw.Tools)...)
		for i := range found {
			if found[i].At == (Place{}) {
				found[i].At = c.At
			}
		}
		c.close(nil, found)
		return
	}
	diagnosis := fault.Diagnose(saw.Fault.Evidence)
	if diagnosis.Kind == fault.Unknown && saw.Fault.Kind != "" {
		// Who saw it knew more than there was to be written down.
		diagnosis = saw.Fault.Kind.Diagnosis(saw.Fault.Evidence)
	}
	cause := diagnosed(c, saw, diagnosis)
	d.tellLost(c, cause)
	d.tellPatience(c, cause, given)
	if saw.Busy != "" && isBusy(diagnosis.Kind) {
		cause.Severity = Warning
		cause.Evidence = append(cause.Evidence, saw.Busy)
		c.settle(InUse, cause, found)
		return
	}
	cause = blame(found, cause)
	c.settle(stateOf(cause), cause, found)
}

// client is the one in whose name the server of a case is started, nil for none.
func (d *Doctor) client(c *Case) *clientconfig.Client {
	if d.As == nil && c.file != nil {
		return c.file.Client
	}
	return d.As
}

// tellLost says of a failure that a missing variable explains, if the variable is
// set where we run, why the server does not get it. A server that does not name
// what it misses may be known to need something.
func (d *Doctor) tellLost(c *Case, f *Finding) {
	kind := fault.Kind(f.Kind)
	if !slices.Contains(blindFailures, kind) || c.server != nil && c.server.URL.Text != "" {
		return
	}
	names := []string{f.pieces.Variable}
	if c.server != nil && f.pieces.Variable == "" {
		names = nil
		for _, v := range d.known(c.server) {
			given := v.Given(func(name string) bool { return setsVariable(c.server, name) }, argvOf(c.server))
			if !given && (v.Required || v.Secret && kind == fault.AuthFailed) {
				names = append(names, v.Name)
			}
		}
	}
	for _, name := range names {
		why := d.whyWithout(d.client(c), name)
		if why == "" || c.server != nil && setsVariable(c.server, name) {
			continue
		}
		if kind == fault.MissingEnvVar {
			f.Explanation = fmt.Sprintf("The server needs %s. It %s.", name, why)
			return
		}
		f.Explanation += fmt.Sprintf(" %s %s.", name, why)
		f.pieces.Variable, f.lost = name, true
		return
	}
}

// setsVariable reports whether an entry has a say about a variable.
func setsVariable(s *clientconfig.Server, name string) bool {
	_, there := envOf(s, name)
	return there || slices.ContainsFunc(s.EnvFrom, func(v clientconfig.Value) bool { return v.Text == name })
}

// tellPatience says of a server that was silent if its client would still wait for
// it: then nothing is known yet.
func (d *Doctor) tellPatience(c *Case, f *Finding, given time.Duration) {
	client := d.client(c)
	if k := fault.Kind(f.Kind); k != fault.Timeout && k != fault.ServerHung || client == nil || c.server == nil {
		return
	}
	if waits := d.waits(client, c.server); waits > given && f.Stage == AtHandshake {
		f.Explanation = fmt.Sprintf("No answer in %s. %s waits %s, so the server may only be slow.", seconds(given), client.Name, seconds(waits))
		f.Confidence = min(f.Confidence, 0.5)
	}
}

// tooSlow is a server that has introduced itself when its client had long given up.
func (d *Doctor) tooSlow(c *Case, saw *Sighting) []Finding {
	client := d.client(c)
	if client == nil || c.server == nil {
		return nil
	}
	var took time.Duration
	for _, s := range saw.Steps {
		if rung(s.Stage) <= rung(AtHandshake) {
			took += s.Took
		}
	}
	waits := d.waits(client, c.server)
	if waits == 0 || took <= waits {
		return nil
	}
	f := finding(AtHandshake, kindSlow, Warning, c.At)
	f.Evidence = []string{"answered after " + seconds(took)}
	f.Explanation = fmt.Sprintf("%s waits %s for a server to start and would have given up.", client.Name, seconds(waits))
	return []Finding{f}
}

// seconds is a time as people say it.
func seconds(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return strconv.FormatFloat(d.Round(time.Second/10).Seconds(), 'f', -1, 64) + " s"
}

// settle closes a case with its cause and what else was found. What merely
// repeats the cause is left out.
func (c *Case) settle(state State, cause *Finding, found []Finding) {
	c.State, c.Cause = state, cause
	for _, f := range found {
		if f.ID != cause.ID || f.At != cause.At {
			c.Also = append(c.Also, f)
		}
	}
}

// diagnosed turns what a server died of into a finding.
func diagnosed(c *Case, saw *Sighting, dg fault.Diagnosis) *Finding {
	stage := AtStart
	if n := len(saw.Steps); n > 0 {
		stage = saw.Steps[n-1].Stage
	}
	f := finding(stage, dg.Kind, Broken, c.At)
	f.Evidence, f.Explanation, f.Confidence = evidence(saw, dg), secret.Scrub(dg.Explanation), dg.Confidence
	f.pieces, f.hint = dg.Pieces, secret.Scrub(dg.SuggestedFix)
	return &f
}

// evidence lists what was seen, the most telling first.
func evidence(saw *Sighting, dg fault.Diagnosis) []string {
	e := saw.Fault.Evidence
	var lines []string
	switch {
	case e.Signal != "":
		lines = append(lines, "ended by "+e.Signal)
	case e.Exited:
		lines = append(lines, fmt.Sprintf("exit %d", e.ExitCode))
	case e.HTTPStatus != 0 && !strings.Contains(e.Text, strconv.Itoa(e.HTTPStatus)):
		lines = append(lines, fmt.Sprintf("HTTP %d", e.HTTPStatus))
	}
	for _, l := range dg.Telling(e.Stderr, 3) {
		lines = append(lines, "stderr: "+secret.Scrub(l))
	}
	for _, l := range saw.Noise[:min(len(saw.Noise), 2)] {
		lines = append(lines, "stdout: "+secret.Scrub(l))
	}
	if e.Text != "" && (len(e.Stderr) == 0 || !e.Exited) {
		lines = append(lines, secret.Scrub(e.Brief()))
	}
	return lines
}

// explains finds what was seen in the entry already and accounts for a failure
// further up: a part of the entry that the client does not see because of its name,
// a variable that is not there, or is there and says nothing.
func explains(found []Finding, failure Finding) *Finding {
	for _, f := range found {
		if f.Kind == string(clientconfig.WrongName) && f.problem != nil && f.problem.Want != "" {
			return &f
		}
	}
	if !slices.Contains(blindFailures, fault.Kind(failure.Kind)) {
		return nil
	}
	asked := failure.pieces.Variable
	for _, kind := range []string{kindForeignReference, kindUnset, kindPlaceholder} {
		for _, f := range found {
			about := f.pieces.Variable
			if f.Kind == kind && (asked == "" || about == "" || about == asked || f.entryVariable == asked) {
				return &f
			}
		}
	}
	return nil
}

// blindFailures are how servers fail that were given nonsense for a variable.
var blindFailures = []fault.Kind{
	fault.MissingEnvVar, fault.AuthFailed, fault.Unknown, fault.ServerCrashed, fault.ConfigInvalid,
	fault.DNS, fault.ConnectionRefused, fault.WrongEndpoint, fault.ToolFailure,
}

// blame puts what explains a failure in its place.
func blame(found []Finding, failure *Finding) *Finding {
	reason := explains(found, *failure)
	if reason == nil {
		return failure
	}
	reason.Severity = Broken
	reason.Evidence = append(reason.Evidence, failure.Evidence...)
	return reason
}

// wrongTransport: the server was reached, but not in the way that the entry tells
// the client to.
func wrongTransport(c *Case, saw *Sighting) *Finding {
	if c.server == nil || c.server.URL.Text == "" {
		return nil
	}
	want, have := c.server.Transport, saw.Transport
	if want == clientconfig.Unknown || have == clientconfig.Unknown || want == have {
		return nil
	}
	if want == clientconfig.HTTP && have == clientconfig.SSE && c.file.Client.Entry.FallsBack {
		return nil
	}
	at := c.At
	if c.server.Type.Path != nil {
		at = place(c.server.Type.At)
	}
	f := finding(AtHandshake, fault.TransportMismatch, Broken, at)
	f.Evidence = []string{fmt.Sprintf("the entry says %s, the server speaks %s", transportName(want), transportName(have))}
	f.Explanation = fmt.Sprintf("%s would speak %s to a server that speaks %s.", c.file.Client.Name, transportName(want), transportName(have))
	return &f
}

func transportName(t clientconfig.Transport) string {
	switch t {
	case clientconfig.HTTP:
		return "Streamable HTTP"
	case clientconfig.SSE:
		return "SSE"
	}
	return string(t)
}

// noise: something else than messages on standard output. We skip such lines, as
// some clients do; others lose the connection over the first one.
func noise(c *Case, saw *Sighting) []Finding {
	if len(saw.Noise) == 0 {
		return nil
	}
	f := finding(AtPure, fault.StdoutPollution, Warning, c.At)
	for _, l := range saw.Noise[:min(len(saw.Noise), 3)] {
		f.Evidence = append(f.Evidence, "stdout: "+secret.Scrub(l))
	}
	f.Explanation = "The server writes lines to standard output that are no messages; some clients close the connection over that."
	return []Finding{f}
}

func isBusy(k fault.Kind) bool {
	return slices.Contains([]fault.Kind{fault.PortInUse, fault.ResourceLocked, fault.SpawnConflict}, k)
}

// stateOf says in one word what a broken finding makes of a server.
func stateOf(f *Finding) State {
	switch {
	case f.Kind == string(clientconfig.Misplaced):
		return Misplaced
	case f.Stage == AtFile || f.Stage == AtParse || f.refused:
		return Unreadable
	case f.Kind == string(clientconfig.CommandHoldsArgs), f.Kind == string(clientconfig.WrongName) && len(f.Evidence) > 0:
		return Dead // the client tries
	case f.Stage == AtShape:
		return Skipped
	}
	switch fault.Kind(f.Kind) {
	case fault.AuthFailed:
		return SignIn
	case fault.Timeout, fault.ServerHung:
		return Unresponsive
	}
	return Dead
}
