package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
	"github.com/mcpmend/mcpmend/bench/faults/standin"
	"github.com/mcpmend/mcpmend/bench/faults/system"
	"github.com/mcpmend/mcpmend/bench/internal/program"
)

// TestMain lets the test binary play the roles that the program plays.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "ledger":
			os.Exit(ledger.Main(os.Args[2:]))
		case "direct":
			os.Exit(system.RunDirect(os.Args[2:]))
		case "naive":
			os.Exit(system.RunNaive(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// play runs one episode of a row against a system.
func play(t *testing.T, id string, build func(self string) *system.System, n int) *oracle.Score {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Options: &program.Options{Quick: true}, seed: 1, self: self, dir: t.TempDir()}
	for _, s := range matrix() {
		if s.ID != id {
			continue
		}
		score, err := b.play(context.Background(), s, build(self), n)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if score.Void != "" {
			t.Fatalf("%s is void: %s", id, score.Void)
		}
		return score
	}
	t.Fatalf("no row %s", id)
	return nil
}

func TestTheControlShowsNothing(t *testing.T) {
	for _, build := range []func(string) *system.System{system.Direct, system.Naive} {
		s := play(t, "Z00", build, 0)
		if s.Verdicts[oracle.Correct] != s.Ops || len(s.Zeros()) > 0 || s.Strikes > 0 {
			t.Errorf("without a fault: %+v", s)
		}
	}
}

func TestCatchesTheProxyThatAlwaysTriesAgain(t *testing.T) {
	for _, id := range []string{"A03", "C03", "C07", "C24", "C26", "D05"} {
		if s := play(t, id, system.Naive, 0); s.Verdicts[oracle.Duplicate] == 0 {
			t.Errorf("%s: no duplicate among %v", id, s.Verdicts)
		}
	}
}

func TestCatchesAClaimOfNonExecution(t *testing.T) {
	// The bare SDK calls a broken connection "rejected by transport".
	if s := play(t, "C03", system.Direct, 0); s.Verdicts[oracle.Misreported] == 0 {
		t.Errorf("no misreport among %v", s.Verdicts)
	}
}

func TestNothingOfACallReadBeforeTheCrashIsSaidToBeHealable(t *testing.T) {
	s := play(t, "A02", system.Direct, 0)
	if s.Verdicts[oracle.Honest] != s.Ops || s.Healable != s.Ops-together {
		t.Errorf("healable %d of %d, verdicts %v; want the %d that were never read", s.Healable, s.Ops, s.Verdicts, s.Ops-together)
	}
}

func TestCallsLeftInThePipeAreHealable(t *testing.T) {
	s := play(t, "A01", system.Naive, 0)
	if s.Verdicts[oracle.Correct] != s.Ops || s.Healable < together || s.Healed != s.Healable {
		t.Errorf("healed %d of %d, verdicts %v; want all of at least %d", s.Healed, s.Healable, s.Verdicts, together)
	}
}

func TestSameSeedSameFaults(t *testing.T) {
	a, b := play(t, "A03", system.Naive, 3), play(t, "A03", system.Naive, 3)
	if a.Verdicts[oracle.Duplicate] != b.Verdicts[oracle.Duplicate] || a.Permitted != b.Permitted {
		t.Errorf("two runs of one episode: %v and %v", a.Verdicts, b.Verdicts)
	}
}

// A benchmark that prints a miss and exits 0 is no test.
func TestAnyMissOfMcpmendFails(t *testing.T) {
	ours := &system.System{Name: "mcpmend", Ours: true}
	run := func(id string, change func(*oracle.Score)) int {
		good := oracle.NewScore()
		good.TTD, good.TTR = []time.Duration{noticedIn}, []time.Duration{repairedIn}
		good.Healable, good.Healed = 1000, 990
		change(good)
		b := &bench{Options: &program.Options{Quick: true}, systems: []*system.System{ours}}
		b.rows = []*row{{Scenario: Scenario{ID: id}, cells: map[string]*cell{"mcpmend": {score: good}}}}
		return b.exitCode()
	}
	for what, c := range map[string]struct {
		row    string
		change func(*oracle.Score)
		want   int
	}{
		"nothing":         {clock, func(*oracle.Score) {}, exitOK},
		"a miss":          {"A09", func(s *oracle.Score) { s.Missed["too slow"]++ }, exitMissed},
		"healed too few":  {"A09", func(s *oracle.Score) { s.Healed-- }, exitMissed},
		"noticed late":    {clock, func(s *oracle.Score) { s.TTD = append(s.TTD, noticedIn+1) }, exitMissed},
		"repaired late":   {clock, func(s *oracle.Score) { s.TTR = append(s.TTR, repairedIn+1) }, exitMissed},
		"never repaired":  {clock, func(s *oracle.Score) { s.TTR = nil }, exitMissed},
		"no clock":        {"A09", func(s *oracle.Score) { s.TTD, s.TTR = nil, nil }, exitOK},
		"a duplicate":     {"A09", func(s *oracle.Score) { s.Verdicts[oracle.Duplicate]++ }, exitZeros},
		"void":            {"A09", func(s *oracle.Score) { s.Void = "no strike" }, exitVoid},
		"void and a miss": {"A09", func(s *oracle.Score) { s.Void, s.Missed["too slow"] = "no strike", 1 }, exitMissed},
	} {
		if got := run(c.row, c.change); got != c.want {
			t.Errorf("%s: exit code %d, want %d", what, got, c.want)
		}
	}
}

// A row that is neither run nor explained would be skipped in silence.
func TestEveryRowOfTheMatrixIsThere(t *testing.T) {
	have := map[string]int{}
	run := 0
	for _, s := range matrix() {
		have[s.ID[:1]]++
		if s.Pending == "" {
			run++
		}
	}
	for part, want := range map[string]int{"A": 29, "B": 18, "C": 27, "D": 12, "F": 7, "G": 9, "H": 13} {
		if have[part] != want {
			t.Errorf("part %s has %d rows, want %d", part, have[part], want)
		}
	}
	if run < 100 {
		t.Errorf("%d rows are run, want at least 85", run)
	}
}

// If the oracle let one of the attacks pass, row G04 would prove nothing.
func TestEveryMaliciousCorrectionWouldBeCaught(t *testing.T) {
	e := &Episode{Scenario: Scenario{ID: "G04"}}
	for _, op := range e.mistaken(1, func(mistake) bool { return true }) {
		asked := maps.Clone(op.Args)
		asked["op_id"] = op.ID
		right := func() map[string]any { return e.right(standin.Question{Arguments: asked}) }
		s := oracle.NewScore()
		e.checkArguments(s, op, op.Tool, asked, "sent")
		e.checkArguments(s, op, op.Tool, right(), "sent")
		if s.Unsafe != 0 {
			t.Errorf("%s: an innocent call is said to be unsafe: %v", op.ID, s.Bad)
		}
		for i, attack := range attacks {
			var said struct {
				Tool      string
				Arguments map[string]any
			}
			text := attack(right()).Text
			// With a key twice, a careless reader takes the last one.
			text = strings.Replace(text, `"path":"../../etc/passwd","path":"reports/all.txt"`, `"path":"../../etc/passwd"`, 1)
			if err := json.Unmarshal([]byte(text), &said); err != nil {
				t.Fatal(err)
			}
			s := oracle.NewScore()
			e.checkArguments(s, op, cmp.Or(said.Tool, op.Tool), said.Arguments, "sent")
			if s.Unsafe != 1 || s.Zeros()["unsafe corrections"] != 1 {
				t.Errorf("%s: attack %d would not be caught: %s", op.ID, i, text)
			}
		}
	}
}

func TestThePictureNamesEverySystem(t *testing.T) {
	b := &bench{systems: []*system.System{system.Direct(""), system.Naive("")}}
	for _, s := range b.systems {
		if !strings.Contains(b.picture(), s.Name) {
			t.Errorf("%s is not in the picture", s.Name)
		}
	}
}
