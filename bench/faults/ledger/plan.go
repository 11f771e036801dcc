package ledger

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Marker is the name of the environment variable by which every process of an
// episode is known, however far it drifted from the one that started it. Its
// value is the episode's directory.
const Marker = "FAULTS_EPISODE"

// Plan is what a scenario tells the server before it starts. It lies in the
// episode's directory and not in the environment, because systems under test
// differ in what they hand down to their children.
type Plan struct {
	// Era is "legacy", "modern" or "" for both.
	Era string `json:"era,omitempty"`
	// Seed decides everything that is random in the server.
	Seed int64 `json:"seed,omitempty"`
	// SSE answers calls as event streams; Resumable gives the events ids and
	// lets a client come back for what it missed (legacy only).
	SSE       bool `json:"sse,omitempty"`
	Resumable bool `json:"resumable,omitempty"`
	// Replay repeats itself to a client that comes back, and mixes in a stranger.
	Replay bool `json:"replay,omitempty"`
	// LostSession is how a request of an unknown session is answered: a status,
	// and 200 means an error inside a successful answer. 0 means 404.
	LostSession int `json:"lost_session,omitempty"`
	// Tools is "", "empty", "many" or "bad-cursor". ToolsLater is the same for
	// every instance after the first, and may also be "removed" (commit_destr is
	// gone) or "changed" (its input schema is another one).
	Tools      string `json:"tools,omitempty"`
	ToolsLater string `json:"tools_later,omitempty"`
	// Discover is "", "silent" or "exit": what a legacy server does when asked
	// for server/discover.
	Discover string `json:"discover,omitempty"`
	// Stubborn ignores the end of stdin and SIGTERM.
	Stubborn bool `json:"stubborn,omitempty"`
	// FloatIDs echoes the ids of requests as fractions, 3 as 3.0 (stdio).
	FloatIDs bool `json:"float_ids,omitempty"`
	// Ceiling kills the server when more calls than this run at once.
	Ceiling int `json:"ceiling,omitempty"`

	// Fussy offers tools that look at their arguments: "some" refuses what does
	// not make sense to them, "all" refuses everything. Rant is said after the
	// refusal, with {{op}} for the operation.
	Fussy string `json:"fussy,omitempty"`
	Rant  string `json:"rant,omitempty"`

	Faults []Fault `json:"faults,omitempty"`
}

// Phase is a moment in the life of an operation, or of the server.
type Phase string

const (
	AtStart      Phase = "start"         // before the server reads anything
	BeforeRead   Phase = "before-read"   // a request lies in the pipe, unread
	AfterRead    Phase = "after-read"    // read, nothing begun
	BeforeCommit Phase = "before-commit" // begun, not committed
	AfterCommit  Phase = "after-commit"  // committed, no byte of the answer written
	MidReply     Phase = "mid-reply"     // N bytes of the answer written
	AfterReply   Phase = "after-reply"   // the whole answer written
)

// Action is what a fault does.
type Action string

const (
	Exit        Action = "exit"         // with code N
	Kill        Action = "kill"         // SIGKILL to itself
	Segfault    Action = "segfault"     // SIGSEGV to itself, with a trace on stderr
	Stop        Action = "stop"         // SIGSTOP to itself
	Sleep       Action = "sleep"        // N milliseconds, then goes on
	Gather      Action = "gather"       // no fault: operations wait for each other
	Hang        Action = "hang"         // this operation is never answered
	CloseStdin  Action = "close-stdin"  // and lives on
	CloseStdout Action = "close-stdout" // and lives on
	ExhaustMem  Action = "exhaust-mem"  // inside the cgroup named by Text
	ExhaustFds  Action = "exhaust-fds"  // no file can be opened any more
	Fork        Action = "fork"         // N children that sleep
	Flood       Action = "flood"        // N bytes on stderr without a newline
	Say         Action = "say"          // Text instead of the answer, see expand
	Print       Action = "print"        // Text on stdout before anything else (stdio)
	Notify      Action = "notify"       // N notifications before the answer
	Ask         Action = "ask"          // a request to the client before the answer
	Shuffle     Action = "shuffle"      // held operations go on in random order
	Respond     Action = "respond"      // HTTP: status N, Header and Text as body
	Drop        Action = "drop"         // HTTP: the connection is cut, N=1 with a reset
	Bomb        Action = "bomb"         // HTTP: an endless body; Text "gzip" compresses it
	LoseSession Action = "lose-session" // HTTP: every session is forgotten
)

// Any matches every operation.
const Any = -1

// Fault strikes at a phase of an operation.
type Fault struct {
	At Phase `json:"at"`
	// Op is the index of the operation, or Any.
	Op int `json:"op"`
	// Every, with Op Any, strikes each nth operation only, the first time it comes.
	Every int `json:"every,omitempty"`
	// Times bounds how often it strikes over all instances: 0 means once, -1 always.
	Times int `json:"times,omitempty"`
	// Later leaves the first instance alone.
	Later bool `json:"later,omitempty"`
	// Hold keeps operations at this phase until so many stand there (or no
	// more come), so that one strike meets them all.
	Hold int `json:"hold,omitempty"`

	Do     Action            `json:"do"`
	N      int               `json:"n,omitempty"`
	Text   string            `json:"text,omitempty"`
	Header map[string]string `json:"header,omitempty"`
}

func planPath(dir string) string { return filepath.Join(dir, "plan.json") }

// WritePlan leaves the plan in dir for the server to find.
func WritePlan(dir string, p Plan) error {
	data, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(planPath(dir), data, 0o644)
}

func readPlan(dir string) (Plan, error) {
	var p Plan
	data, err := os.ReadFile(planPath(dir))
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(data, &p)
}
