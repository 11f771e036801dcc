package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

func TestNothingIsLostOnTheWayThroughRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	w, err := newWorld(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	server, err := w.rig.Go(t.Context(), rig.Lossless)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]script{"legacy": legacyScript, "modern": modernScript} {
		found, err := playAll(t.Context(), s,
			w.stdio(name+", direct", server),
			w.run(name+", stdio → run → stdio", "--", server),
			w.front(name+", HTTP → run → stdio", "--", server))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			for _, text := range f.Wrong {
				t.Errorf("%s: %s", f.Way, text)
			}
		}
	}
}

// TestADamagedMessageIsNoticed plays with a server that is not the same the second
// time, as through a layer that tidies up.
func TestADamagedMessageIsNoticed(t *testing.T) {
	w := &world{}
	answers := func(result string) way {
		return w.stdio(result, "sh", "-c", `while read -r line; do echo '{"jsonrpc":"2.0","id":1,"result":`+result+`}'; done`)
	}
	ask := func(ctx context.Context, p *player) { p.call(ctx, "number", `1`, "tools/call", `{}`) }
	found, err := playAll(t.Context(), ask, answers(`1.0`), answers(`1`), answers(`1.0`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]int{0: 0, 1: 1, 2: 0} // the control, the damaged one, the good one
	for i, n := range want {
		if got := found[i].Wrong; len(got) != n {
			t.Errorf("%s: %d differences, want %d: %v", found[i].Way, len(got), n, got)
		}
	}
	if text := strings.Join(found[1].Wrong, ""); !strings.Contains(text, "number: ") || !strings.Contains(text, `1.0`) {
		t.Errorf("the difference is described as %q", text)
	}
}

func TestOnlyTheIDOfAServersRequestIsLeftOut(t *testing.T) {
	for message, want := range map[string]string{
		`{"id":7,"method":"roots/list","params":{"id":8}}`:  `{"id":*,"method":"roots/list","params":{"id":8}}`,
		`{"method":"x","id":"a\"b","params":{}}`:            `{"method":"x","id":*,"params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/x"}`:      `{"jsonrpc":"2.0","method":"notifications/x"}`,
		`{"jsonrpc":"2.0","id":7,"result":{"content":[ ]}}`: `{"jsonrpc":"2.0","id":7,"result":{"content":[ ]}}`,
	} {
		if got := string(withoutRequestID([]byte(message))); got != want {
			t.Errorf("withoutRequestID(%s) = %s, want %s", message, got, want)
		}
	}
}

func TestMasksLeaveTheRestAlone(t *testing.T) {
	got := mask([]byte(`created at 10:04:59 PM, not 10:04`), []*regexp.Regexp{clock})
	if want := `created at *, not 10:04`; string(got) != want {
		t.Errorf("mask = %q, want %q", got, want)
	}
}
