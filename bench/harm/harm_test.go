package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestASituationIsJudgedByWhatTheBareClientGets(t *testing.T) {
	const second = time.Second
	failed := errors.New("no reply")
	for _, c := range []struct {
		name            string
		direct, through outcome
		want            verdict
		unsure          bool
	}{
		{"both succeed", outcome{took: second}, outcome{took: second}, held, false},
		{"at the limit", outcome{took: second}, outcome{took: 1200 * time.Millisecond}, held, false},
		{"over the limit", outcome{took: second}, outcome{took: 1201 * time.Millisecond}, late, true},
		{"far over it", outcome{took: second}, outcome{took: 3 * second}, late, false},
		{"only direct succeeds", outcome{took: second}, outcome{err: failed, took: second}, lost, false},
		{"both fail", outcome{err: failed}, outcome{err: failed}, void, true},
		{"only mcpmend succeeds", outcome{err: failed}, outcome{}, void, true},
		{"it cannot be set up", outcome{err: errCannot}, outcome{}, void, false},
	} {
		got := judge(&situation{id: "x"}, c.direct, c.through)
		if got.Verdict != c.want || got.unsure() != c.unsure {
			t.Errorf("%s: got %s, unsure %t; want %s, unsure %t", c.name, got.Verdict, got.unsure(), c.want, c.unsure)
		}
	}
}

func TestSituationsAreEnoughAndTellApart(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range situations() {
		if seen[s.id] || s.name == "" || s.server == "" || s.play == nil {
			t.Errorf("situation %q is incomplete, or there twice", s.id)
		}
		seen[s.id] = true
	}
	if len(seen) < enough {
		t.Errorf("got %d situations, want at least %d", len(seen), enough)
	}
}

// Each kind of situation has to notice that something is missing: here mcpmend is a
// program that ends at once, so every one of them must be missed.
func TestWhatIsLostIsMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("needs npm the first time")
	}
	w, err := newWorld(t.Context(), true, "/bin/false")
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, r := range w.playAll(t.Context(), choose(situations(), "environment,detach,shutdown,http.closes", true)) {
		if r.Verdict != lost {
			t.Errorf("%s: got %s (%s), want it to be missed", r.ID, r.Verdict, r.Why)
		}
	}
}

func TestNotificationsThatAreMissingOrOutOfOrderAreNoticed(t *testing.T) {
	note := func(n string) []byte {
		return []byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":` + n + `}}`)
	}
	other := []byte(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	if err := countProgress([][]byte{note("1"), other, note("2")}, 2); err != nil {
		t.Errorf("all there: got %v", err)
	}
	for name, seen := range map[string][][]byte{
		"one missing":  {note("1")},
		"out of order": {note("2"), note("1")},
		"one twice":    {note("1"), note("1"), note("2")},
	} {
		if countProgress(seen, 2) == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestASideThatHangsIsGivenUp(t *testing.T) {
	w := &world{dir: t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := w.play(ctx, &situation{id: "x", play: func(ctx context.Context, s *side) error {
		if !s.through {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}, true)
	if r.Verdict != lost {
		t.Errorf("got %s, want it to be missed", r.Verdict)
	}
}
