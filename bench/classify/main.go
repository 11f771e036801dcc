// Classify scores fault.Diagnose on error messages that people reported, beside the
// plain substring rules one would write first.
//
//	go run ./bench/classify [--quick] [--data FILE] [--json FILE] [--confuse-held-out]
//
// A message is right when the kind is the one its thread settled on, wrong when
// Diagnose names another, unknown when it names none. The program fails when of
// the messages that carry evidence (evidence.go) fewer than 85 % are right or more
// than 2 % are wrong.
//
// Every third repository is held out, and its totals stand alone. How much they are
// worth depends on what was known of them when phrases were written:
//
//   - When first scored, before anything was known, 62.8 % of 94 were right and 5.3 %
//     wrong.
//   - In a first round the phrases were extended with the held-out kinds (not the
//     messages) in sight, and the rule of evidence was refined on the other messages.
//   - In a second round phrases were added from memory of what shells, runtimes,
//     package managers, HTTP stacks and SDKs print. The held-out messages were not
//     read; their score was, about ten times, so it had a say in what was kept.
//   - Later one phrase, "no such file or directory <runtime>", was written for a
//     message that turned out to be one of those held out. It makes one more right.
//
// So every later figure is too kind. Besides, the survey from which the phrases were
// first written quotes about half of the held-out messages in part; of the 45 that it
// does not quote, 25 were right and 2 wrong after the first round. That is the figure
// to expect of messages nobody has seen.
//
// So that this does not go on, the kinds of the held-out messages are shown only on
// request. Do not write phrases after asking for them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mcpmend/mcpmend/bench/internal/program"
	"github.com/mcpmend/mcpmend/fault"
)

const (
	wantRight = 85.0 // per cent, at least
	wantWrong = 2.0  // per cent, at most
)

func main() {
	o := program.Flags("the same; the whole run takes less than a second")
	data := flag.String("data", filepath.Join("..", "shared", "data", "errors.jsonl"), "the messages, one JSON object per line")
	confuse := flag.Bool("confuse-held-out", false, "show which kinds of the held-out messages were mistaken; for reports, not for tuning")
	o.Main("classify", func(context.Context) (any, program.Verdict, error) {
		r, err := run(*data)
		if err != nil {
			return nil, program.Failed, err
		}
		r.print(os.Stdout, *confuse)
		return r, program.If(r.reached()), nil
	})
}

type entry struct {
	Error    string
	Category string
	Source   string
	Literal  bool

	heldOut, evidence bool
}

func run(path string) (*report, error) {
	entries, err := load(path)
	if err != nil {
		return nil, err
	}
	r := &report{Kinds: make(kindScores), HeldOutKinds: make(kindScores)}
	for _, e := range entries {
		said := string(fault.Diagnose(evidenceOf(e.Error)).Kind)
		r.add(e, said, seedRules(e.Error))
	}
	return r, nil
}

// load reads the literal messages and marks those held out.
func load(path string) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var entries []entry
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %v", path, len(entries)+1, err)
		}
		if e.Literal {
			entries = append(entries, e)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s: no literal messages", path)
	}
	var repos []string
	for _, e := range entries {
		repos = append(repos, e.repo())
	}
	slices.Sort(repos)
	repos = slices.Compact(repos)
	for i := range entries {
		at, _ := slices.BinarySearch(repos, entries[i].repo())
		entries[i].heldOut = at%3 == 0
		entries[i].evidence = carriesEvidence(entries[i].Error)
	}
	return entries, nil
}

func (e entry) repo() string {
	repo, _, _ := strings.Cut(e.Source, "#")
	return repo
}

// evidenceOf puts a reported message where a running mcpmend would have it: one
// line is the text of an error, several are what a server wrote to stderr.
func evidenceOf(message string) fault.Evidence {
	lines := strings.Split(message, "\n")
	if len(lines) == 1 {
		return fault.Evidence{Text: message}
	}
	return fault.Evidence{Text: lines[0], Stderr: lines[1:], Moment: fault.AtHandshake}
}

// score counts one group of messages.
type score struct {
	Entries int `json:"entries"`
	Right   int `json:"right"`
	Wrong   int `json:"wrong"`
	Unknown int `json:"unknown"`
}

func (s *score) add(want, said string) {
	s.Entries++
	switch said {
	case want:
		s.Right++
	case "unknown":
		s.Unknown++
	default:
		s.Wrong++
	}
}

func (s score) rightPct() float64 { return pct(s.Right, s.Entries) }
func (s score) wrongPct() float64 { return pct(s.Wrong, s.Entries) }

func pct(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

// both is a group scored by Diagnose and by the seed's rules.
type both struct {
	Mcpmend score `json:"mcpmend"`
	Seed    score `json:"seed_rules"`
}

func (b *both) add(want, said, seed string) {
	b.Mcpmend.add(want, said)
	b.Seed.add(want, seed)
}

type report struct {
	All         both `json:"all"`
	Evidence    both `json:"with_evidence"`
	Tuned       both `json:"with_evidence_tuned_on"`
	HeldOut     both `json:"with_evidence_held_out"`
	HeldOutAll  both `json:"all_held_out"`
	SymptomOnly both `json:"symptom_only"`

	// The messages with evidence by their true kind, those tuned on and those held out.
	Kinds        kindScores `json:"kinds_tuned_on"`
	HeldOutKinds kindScores `json:"-"`
}

type kindScores map[string]*kindScore

type kindScore struct {
	score
	Said map[string]int `json:"said"` // what was said instead
}

func (r *report) add(e entry, said, seed string) {
	r.All.add(e.Category, said, seed)
	if e.heldOut {
		r.HeldOutAll.add(e.Category, said, seed)
	}
	if !e.evidence {
		r.SymptomOnly.add(e.Category, said, seed)
		return
	}
	r.Evidence.add(e.Category, said, seed)
	if e.heldOut {
		r.HeldOut.add(e.Category, said, seed)
		r.HeldOutKinds.add(e.Category, said)
	} else {
		r.Tuned.add(e.Category, said, seed)
		r.Kinds.add(e.Category, said)
	}
}

func (m kindScores) add(want, said string) {
	k := m[want]
	if k == nil {
		k = &kindScore{Said: make(map[string]int)}
		m[want] = k
	}
	k.score.add(want, said)
	if said != want {
		k.Said[said]++
	}
}

func (r *report) reached() bool {
	return r.Evidence.Mcpmend.rightPct() >= wantRight && r.Evidence.Mcpmend.wrongPct() <= wantWrong
}

func (r *report) print(out io.Writer, confuseHeldOut bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "messages\tentries\tright\twrong\tunknown\t\tseed rules: right\twrong\tunknown")
	for _, g := range []struct {
		name string
		b    both
	}{
		{"with evidence", r.Evidence},
		{"  of these held out", r.HeldOut},
		{"  of these tuned on", r.Tuned},
		{"symptom only", r.SymptomOnly},
		{"all", r.All},
		{"  of these held out", r.HeldOutAll},
	} {
		m, s := g.b.Mcpmend, g.b.Seed
		fmt.Fprintf(w, "%s\t%d\t%d (%.1f %%)\t%d (%.1f %%)\t%d\t\t%d\t%d\t%d\n",
			g.name, m.Entries, m.Right, m.rightPct(), m.Wrong, m.wrongPct(), m.Unknown, s.Right, s.Wrong, s.Unknown)
	}
	w.Flush()
	r.Kinds.print(out, "true kind, tuned on")
	if confuseHeldOut {
		r.HeldOutKinds.print(out, "true kind, held out")
	}
	verdict := "reached"
	if !r.reached() {
		verdict = "missed"
	}
	fmt.Fprintf(out, "\nclassify: right %.1f %%, wrong %.1f %% of %d messages with evidence (held out: right %.1f %%, wrong %.1f %% of %d); goal of ≥ %.0f %% and ≤ %.0f %% %s\n",
		r.Evidence.Mcpmend.rightPct(), r.Evidence.Mcpmend.wrongPct(), r.Evidence.Mcpmend.Entries,
		r.HeldOut.Mcpmend.rightPct(), r.HeldOut.Mcpmend.wrongPct(), r.HeldOut.Mcpmend.Entries, wantRight, wantWrong, verdict)
}

func (m kindScores) print(out io.Writer, title string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\tentries\tright\twrong\tunknown\tsaid instead\n", title)
	for _, kind := range sortedKeys(m) {
		k := m[kind]
		var said []string
		for _, other := range sortedKeys(k.Said) {
			said = append(said, fmt.Sprintf("%s %d", other, k.Said[other]))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", kind, k.Entries, k.Right, k.Wrong, k.Unknown, strings.Join(said, ", "))
	}
	w.Flush()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
