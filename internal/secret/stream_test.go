package secret

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// stream pushes a text line by line, and flushes as if each came after a pause.
func stream(h *Hider, text string, pauses bool) string {
	st := h.Stream()
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(st.Push(line))
		if pauses {
			b.WriteString(st.Flush())
		}
	}
	b.WriteString(st.Flush())
	return b.String()
}

func TestAStreamHidesWhatTheWholeTextWould(t *testing.T) {
	shown := 0
	for _, kind := range []string{"words", "signs", "lines", "passphrase"} {
		value := canaries[kind]
		h := New(value)
		for encoding, text := range encodings(value) {
			for split, between := range splits {
				cut := pieces(text, 16)
				all := "[notes] started\n[notes] it has "
				for i, piece := range cut {
					if i > 0 {
						sep := between
						if strings.Contains(sep, "%d") {
							sep = fmt.Sprintf(sep, i%10, i%10)
						}
						all += sep
					}
					all += piece
				}
				all += "\n" + strings.Repeat("[notes] a line of the usual kind\n", 4)
				got := stream(h, all, false)
				if left := survivor(got, cut, own(encoding, text, value)); left != "" || strings.Count(got, "\n") != strings.Count(all, "\n") {
					t.Errorf("%s, %s, %s: %q is left in\n%s", kind, encoding, split, left, got)
				}
				// After a pause the beginning has to be shown, or nothing would ever be; all that follows is hidden.
				got = stream(h, all, true)
				if left := survivor(got, cut[1:], own(encoding, text, value)); left != "" && len(cut) > 1 {
					if shown++; shown < 10 {
						t.Errorf("%s, %s, %s: with pauses %q is left in\n%s", kind, encoding, split, left, got[:min(len(got), 400)])
					}
				}
			}
		}
	}
}

func TestAStreamHoldsBackOnlyWhatMayBeASecret(t *testing.T) {
	h := New("correct-horse-battery-staple")
	st := h.Stream()
	for _, test := range []struct{ push, want string }{
		{"ready\n", "ready\n"},
		{"half a ", ""},
		{"line\n", "half a line\n"},
		{"it is correct-ho\n", ""},
		{"rse-battery-staple\n", "it is [hidden]\n[hidden]\n"},
		{"next\n", "next\n"},
	} {
		if got := st.Push(test.push); got != test.want {
			t.Errorf("Push(%q) = %q, want %q", test.push, got, test.want)
		}
	}
	st.Push("it is correct-ho\n")
	if got := st.Flush(); got != "it is [hidden]\n" {
		t.Errorf("after a pause %q is shown", got)
	}
	if got := st.Push("rse-battery-staple\n"); got != "[hidden]\n" {
		t.Errorf("the end is shown as %q", got)
	}
}

func TestAStreamIsBounded(t *testing.T) {
	h := New(strings.Repeat("0123456789abcdef", 1<<14))
	st := h.Stream()
	out := 0
	for range 1 << 12 {
		out += len(st.Push(strings.Repeat("0123456789abcdef", 8)))
		if len(st.held) > mostHeld+128 || len(st.context) > mostContext+usualContext {
			t.Fatalf("%d bytes are held back and %d remembered", len(st.held), len(st.context))
		}
	}
	if out == 0 {
		t.Error("nothing was ever shown")
	}
}

func TestAStreamFollowsALongSecretOverPauses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	for b.Len() < 3000 {
		fmt.Fprint(&b, r.Uint64()) // which has no look
	}
	text := b.String()
	cut := pieces(text, 70)
	got := stream(New(text), "[notes] "+strings.Join(cut, "\n[notes] ")+"\nnext\n", true)
	if left := survivor(got, cut, text); left != "" {
		t.Errorf("%q is left in\n%s", left, got)
	}
}
