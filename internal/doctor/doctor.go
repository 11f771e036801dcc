// Package doctor finds out why a server in a client's configuration does not
// work, and mends it.
//
// [Doctor.Check] reads the files of the clients and climbs a ladder for each
// server in them, rung by rung ([Stage]). What can be seen without starting
// anything comes first; then the server is started in the environment that its
// client would give it and asked to introduce itself. The first rung that breaks
// is the cause; what follows from it is not reported. Each server ends as one
// [Case] with at most one Cause.
//
// A [Finding] carries its [Fix]es, the best first. [Doctor.Heal] applies them to a
// copy of the file, looks again, keeps what brought the server further, and
// writes only then.
//
// A command that comes with a project is not started before a person has agreed to
// it ([Approvals]). docs/DOCTOR.md says for users what is done when.
//
// How a server is started and spoken to is not known here: whoever makes a Doctor
// gives it a Probe. Nothing in a Case, a Finding or a Fix that is meant to be
// shown holds a secret.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/registry"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// A Doctor examines one machine, as one user. The zero value can only look at
// files. Its methods may be called by several goroutines at once.
type Doctor struct {
	// System says where the clients' files are.
	System clientconfig.System
	// Environ is the environment of a client started from a terminal.
	Environ []string
	// Served is set if a client has started us, and no terminal: its PATH may lack what
	// a terminal has.
	Served bool
	// Desktop knows that of one started from the desktop. nil guesses from Environ.
	Desktop *machine.Desktop
	// Probe starts or dials a server and says how far that went. nil starts nothing.
	Probe func(context.Context, Start) Sighting
	// Store writes files and keeps what was in them. nil writes nothing.
	Store *clientconfig.Store
	// Approvals are the commands of project files that a person has agreed to run.
	// nil approves nothing.
	Approvals *Approvals
	// Programs finds programs where a client does not look. nil finds none.
	Programs *machine.Programs
	// Registry knows what servers need. nil knows nothing.
	Registry *registry.Registry
	// Self is a path of our own program that will be there tomorrow, for entries that
	// run a server through us. "" offers no such thing. See StableProgram.
	Self string
	// Withheld says which variables "mcpmend run" keeps from a server unless it is told
	// to pass them on. nil is none.
	Withheld func(name string) bool
	// Timeout bounds each server's start, handshake and lists together; 0 is ten
	// seconds. An entry that tells its client to wait longer is given that, and a
	// client that waits longer by itself is mentioned.
	Timeout time.Duration
	// Parallel is how many servers run at the same time at most; 0 is 32.
	Parallel int
	// As is the client whose environment is given to every server; nil means each
	// server's own client.
	As *clientconfig.Client
	// Static looks at files only and starts nothing.
	Static bool
	// Call is a tool to call on every server that got so far, nil for none.
	Call *Call

	look *oneLook // nil outside of Check
}

// Which says what to look at. The zero value is everything.
type Which struct {
	// Servers by name, Clients by ID, Scopes such as "user" and "project".
	Servers, Clients, Scopes []string
}

// A Stage is a rung of the ladder.
type Stage string

// The rungs, from the ground up.
const (
	AtFile      Stage = "file"      // the file can be read, and the client reads it
	AtParse     Stage = "parse"     // it is the format that the client expects
	AtShape     Stage = "shape"     // the entry says what the client understands
	AtVariables Stage = "variables" // what it refers to is there
	AtResolve   Stage = "resolve"   // the program is found, in the client's PATH
	AtStart     Stage = "start"     // the process runs, or the connection stands
	AtPure      Stage = "pure"      // nothing but messages on standard output
	AtHandshake Stage = "handshake" // the server introduces itself
	AtTools     Stage = "tools"     // it lists its tools
	AtSchemas   Stage = "schemas"   // their schemas and names can be used
	AtCall      Stage = "call"      // a tool answers; only when asked for
)

var stages = []Stage{AtFile, AtParse, AtShape, AtVariables, AtResolve, AtStart, AtPure, AtHandshake, AtTools, AtSchemas, AtCall}

// rung is how high a stage is; -1 is the ground.
func rung(s Stage) int { return slices.Index(stages, s) }

// State is what has become of a server, in one word.
type State string

// The first four are those of a running server; the others say why there is none.
const (
	Healthy      State = "healthy"
	Degraded     State = "degraded"     // it works, and something should be changed
	Unresponsive State = "unresponsive" // it runs and does not answer
	Dead         State = "dead"         // it does not start, or ends
	SignIn       State = "sign-in"      // it wants somebody to sign in
	InUse        State = "in-use"       // a running copy holds what it needs: not broken
	Skipped      State = "skipped"      // the client passes over the entry
	Unreadable   State = "unreadable"   // the client cannot read the file
	Misplaced    State = "misplaced"    // it stands where the client does not look
	Shadowed     State = "shadowed"     // another entry of that name wins
	Disabled     State = "disabled"     // switched off by the user
	Pending      State = "pending"      // from a project file and not approved yet
	Unchecked    State = "unchecked"    // not started, and nothing wrong to be seen
)

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	Broken  Severity = "error" // it does not work in this client
	Warning Severity = "warn"  // it works, but not well or not for long
)

// A Case is one server of one client, or one file that is broken as a whole, and
// what was found.
type Case struct {
	// Name of the server, "" for a file as a whole.
	Name string `json:"server,omitempty"`
	// Client is the ID of the client, Scope that of the file.
	Client string `json:"client"`
	Scope  string `json:"scope,omitempty"`
	// At is where the entry stands.
	At Place `json:"at"`
	// State says it in one word; Reached is the last rung that held, "" if none.
	State   State `json:"state"`
	Reached Stage `json:"reached,omitempty"`
	// Cause is what is wrong: the one thing that explains the rest. nil if nothing.
	Cause *Finding `json:"cause,omitempty"`
	// Also are findings that are not consequences of the cause.
	Also []Finding `json:"also,omitempty"`
	// Ladder says how each rung went, as far as it was climbed.
	Ladder []Step `json:"ladder,omitempty"`
	// Info is what the server said of itself.
	Info *Info `json:"info,omitempty"`
	// Stderr is what it wrote last before it failed.
	Stderr []string `json:"stderr,omitempty"`
	// Approve is the hash that approves a Pending command.
	Approve string `json:"approve,omitempty"`
	// Changed are files that a Pending command runs, or folders of them, that are not what
	// they were when it was approved.
	Changed []string `json:"changed,omitempty"`
	// Untrusted says of a Disabled server that its client uses none in this folder, and
	// what to do about it.
	Untrusted string `json:"untrusted,omitempty"`
	// EveryTime: a Pending command runs more files than an approval can cover.
	EveryTime bool `json:"-"`
	// Runs is the command or URL, safe to be shown.
	Runs string `json:"runs,omitempty"`
	// Took is how long it was under examination.
	Took time.Duration `json:"-"`

	file   *clientconfig.File
	server *clientconfig.Server
	saw    *Sighting
	hider  *secret.Hider // of what was started, nil if it did not come so far
}

// Called returns what a tool answered that was called at the top of the ladder,
// and whether the tool says that it failed. ok is false if none was called, or it
// did not answer.
func (c *Case) Called() (result []byte, failed, ok bool) {
	if c.saw == nil || c.saw.Result == nil {
		return nil, false, false
	}
	return c.saw.Result, c.saw.ToolError, true
}

// A Place is a line of a file.
type Place struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String is the place as people and editors write it.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// A Step is one rung of the ladder and how it went.
type Step struct {
	Stage Stage         `json:"stage"`
	OK    bool          `json:"ok"`
	Note  string        `json:"note,omitempty"`
	Took  time.Duration `json:"-"`
}

// Info is what a server said of itself.
type Info struct {
	Name      string   `json:"name,omitempty"`
	Version   string   `json:"version,omitempty"`
	Protocol  string   `json:"protocol,omitempty"`
	Transport string   `json:"transport,omitempty"`
	Tools     []string `json:"tools"`
}

// A Finding is something wrong, with its place, what shows it, and what can be
// done about it.
type Finding struct {
	// ID is Stage and Kind with a dot between, such as "start.missing_env_var". It
	// is stable: people search for it and programs act on it.
	ID string `json:"id"`
	// Stage is where it shows. Kind is a kind of package fault, one of package
	// clientconfig, or one of this package's own.
	Stage    Stage    `json:"stage"`
	Kind     string   `json:"kind"`
	Severity Severity `json:"severity"`
	At       Place    `json:"at"`
	// Evidence is what was seen, line by line; it may quote a server.
	Evidence []string `json:"evidence,omitempty"`
	// Explanation says what it means, for people and models.
	Explanation string `json:"explanation"`
	// Confidence is between 0 and 1; what is seen in a file is certain.
	Confidence float64 `json:"confidence"`
	// Fixes are what could be done, the best first.
	Fixes []Fix `json:"fixes,omitempty"`
	// Help is a page that helps, such as the one where a token is made.
	Help string `json:"help,omitempty"`

	// What the fixes need to know.
	pieces  fault.Pieces
	problem *clientconfig.Problem
	// refused: the client reads nothing of the file because of it.
	refused bool
	// entryVariable is the variable of the entry whose value refers to another.
	entryVariable string
	// lost: pieces.Variable is set where we run and does not reach the server, which
	// has not named it but is known to need it.
	lost bool
	hint string
}

// Class says who decides about a fix.
type Class string

// The classes.
const (
	// Auto: it can be taken back, runs the same program and trusts nobody new.
	Auto Class = "auto"
	// Ask: a person has to agree to this very change.
	Ask Class = "ask"
	// Never: only a person can do it; Do says what.
	Never Class = "never"
)

// A Fix is one way to mend a finding.
type Fix struct {
	// Name says what kind of fix it is, such as "absolute_path".
	Name  string `json:"name"`
	Class Class  `json:"class"`
	// Does says what it changes, or for class never what a person has to do, in a
	// line: lower case, no full stop.
	Does string `json:"does"`
	// Run is a command for a person to paste, "" if none would help.
	Run string `json:"run,omitempty"`
	// Edits are the changes to files that the fix is made of; none for class never.
	Edits []Edit `json:"edits,omitempty"`

	// clean removes what broke and will be made again, such as one folder of npm's
	// cache. It is only called by Heal. nil if the fix is made of edits alone.
	clean func(context.Context) error
	// wait is how long the server is given when the fix is tried; 0 is the usual time.
	// within says that its client gives it that much by itself.
	wait   time.Duration
	within bool
	// person: see NeedsPerson.
	person bool
}

// Changes reports whether the fix changes anything. To wait longer does not.
func (f *Fix) Changes() bool { return len(f.Edits) > 0 || f.clean != nil }

// An Edit is one change to one file. Its value is not in it for all to see, since
// it may be secret; a diff of the file shows it with secrets hidden.
type Edit struct {
	File string            `json:"file"`
	Path clientconfig.Path `json:"path"`

	// open reads the file if it is not the one of the case.
	open  func() *clientconfig.File
	apply func(*clientconfig.File) (*clientconfig.File, error)
}

// A Report is the whole of an examination.
type Report struct {
	Cases []*Case
	// Looked are the clients that were looked for, Found those that have a file.
	Looked, Found []*clientconfig.Client
	Took          time.Duration
}

// Start is all that is needed to start or dial a server the way a client would.
type Start struct {
	Command []string
	Dir     string
	Env     []string
	URL     string
	// Header is what the client sends along, each as "Name: value".
	Header []string
	// Transport is what the entry says. With Unknown the probe finds out; with
	// another it says in Sighting.Transport what the server really speaks.
	Transport clientconfig.Transport
	// Timeout bounds it all; 0 is ten seconds.
	Timeout time.Duration
	// Call is a tool to call after all else went well, nil for none.
	Call *Call

	// refers are the variables that the entry refers to, as NAME=value.
	refers []string
	// anywhere: the client starts it in whatever folder it works in itself, and we start
	// it elsewhere.
	anywhere bool
}

// Call is a tool and its arguments, a JSON object.
type Call struct {
	Tool      string
	Arguments []byte
}

// Sighting is what a probe saw.
type Sighting struct {
	// Steps are the rungs from AtStart on, as far as they were climbed; the last one
	// is not OK if Fault is set.
	Steps []Step
	// Fault is why it did not go on. nil if all went well.
	Fault *fault.Fault
	// Noise are lines on standard output that were no messages.
	Noise []string
	// Transport is what the server speaks, if that was found out.
	Transport clientconfig.Transport
	Info      *Info
	// Tools are the definitions, as the server wrote them.
	Tools []Tool
	// Result is what the called tool returned, and ToolError that it failed.
	Result    []byte
	ToolError bool
	// Busy is set if the server failed for something that a running copy of the
	// same server holds; it says what.
	Busy string
}

// A Tool is a definition from tools/list.
type Tool struct {
	Name         string
	InputSchema  []byte
	OutputSchema []byte
	// Definition is all of it.
	Definition []byte
}
