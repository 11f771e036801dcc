package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestColourIsAskedForInTheUsualWays(t *testing.T) {
	for _, test := range []struct {
		env           string
		off, terminal bool
		want          bool
	}{
		{"", false, true, true},
		{"", false, false, false},
		{"", true, true, false},
		{"NO_COLOR=1", false, true, false},
		{"NO_COLOR=anything", false, true, false},
		{"NO_COLOR=", false, true, true},
		{"CLICOLOR=0", false, true, false},
		{"CLICOLOR=1", false, false, false},
		{"CLICOLOR_FORCE=1", false, false, true},
		{"CLICOLOR_FORCE=0", false, false, false},
		{"CLICOLOR_FORCE=1 NO_COLOR=1", false, true, false},
		{"CLICOLOR_FORCE=1", true, true, false},
		{"TERM=dumb", false, true, false},
	} {
		getenv := func(name string) string { return lookupEnv(strings.Fields(test.env), name) }
		if got := wantsColour(test.off, test.terminal, getenv); got != test.want {
			t.Errorf("env %q, --no-color %v, terminal %v: colour %v, want %v", test.env, test.off, test.terminal, got, test.want)
		}
	}
}

func TestOnlyALocaleThatSaysSoIsDenied(t *testing.T) {
	for env, want := range map[string]bool{
		"":                             true,
		"LANG=de_DE.UTF-8":             true,
		"LANG=C":                       false,
		"LC_ALL=C LANG=de_DE.UTF-8":    false,
		"LC_CTYPE=C.utf8 LANG=POSIX":   true,
		"LC_ALL= LC_CTYPE= LANG=POSIX": false,
	} {
		if got := speaksUnicode(func(name string) string { return lookupEnv(strings.Fields(env), name) }); got != want {
			t.Errorf("%q: unicode %v, want %v", env, got, want)
		}
	}
}

func TestTheAnswerTakesThePlaceOfTheProgressLine(t *testing.T) {
	var both bytes.Buffer
	s := &screen{out: &both, err: &both, live: true, glyphs: signs}
	s.progress("checking 1 of 2")
	s.progress("checking 2 of 2")
	s.printf("all well\n")
	s.printf("and more\n")
	want := "checking 1 of 2\r\x1b[Kchecking 2 of 2\r\x1b[Kall well\nand more\n"
	if diff := cmp.Diff(want, both.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestThereIsNoProgressWithoutATerminal(t *testing.T) {
	var out, err bytes.Buffer
	p := &program{env: Env{Stdin: strings.NewReader("y\n"), Stdout: &out, Stderr: &err}}
	s := p.screen()
	s.progress("checking")
	if s.ask("may I?") {
		t.Error("somebody who cannot be asked has agreed")
	}
	s.printf("done\n")
	if out.String() != "done\n" || err.String() != "" {
		t.Errorf("stdout %q, stderr %q", out.String(), err.String())
	}
}

func TestProgressGoesOnButNotOverAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen bytes.Buffer
		answer, person := io.Pipe()
		s := &screen{err: &seen, in: answer, live: true, asks: true, done: t.Context().Done(), glyphs: signs}
		began := time.Now()
		rest := s.busy(func() string { return fmt.Sprintf("at it for %.0f s", time.Since(began).Seconds()) })
		time.Sleep(2500 * time.Millisecond)
		agreed := make(chan bool)
		go func() { agreed <- s.ask("Do this?") }()
		time.Sleep(10 * time.Second)
		io.WriteString(person, "y\n")
		if !<-agreed {
			t.Error("a yes was not heard")
		}
		time.Sleep(time.Second)
		rest()
		const erased = "\r\x1b[K"
		want := "at it for 0 s" + erased + "at it for 1 s" + erased + "at it for 2 s" + erased + "Do this? [y/N] " + "at it for 13 s" + erased
		if diff := cmp.Diff(want, seen.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestOnlyAYesIsAYes(t *testing.T) {
	var err bytes.Buffer
	s := &screen{err: &err, in: strings.NewReader("y\nYES\n\nno\nyo\nyes"), asks: true, glyphs: signs}
	var got []bool
	for range 7 {
		got = append(got, s.ask("may I?"))
	}
	// The last line never ended: the input was closed on somebody still typing.
	if diff := cmp.Diff([]bool{true, true, false, false, false, false, false}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.HasPrefix(err.String(), "may I? [y/N] ") {
		t.Errorf("asked %q", err.String())
	}
}

func TestForeignTextCannotMoveTheCursor(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[31mred\x1b[0m":                   "red",
		"\x1b[2K\rall 9 healthy":               "all 9 healthy",
		"\x1b]0;title\x07x\x1b]8;;u\x1b\\y":    "xy",
		"one\ntwo\r\n\tthree":                  "one two three",
		"\u202egnirts":                         "gnirts",
		"bell\a back\b \u009b31m c1 \xff bad":  "bell back 31m c1 bad",
		"Grüße 漢字":                             "Grüße 漢字",
		"\x1bP1$r0m\x1b\\device \x1b(Bcharset": "device charset",
	} {
		if got := plain(text); got != want {
			t.Errorf("plain(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTextIsCutAndPaddedAsATerminalCounts(t *testing.T) {
	s := &screen{glyphs: signs}
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 10, "short"},
		{"exactly10!", 10, "exactly10!"},
		{"longer than ten", 10, "longer th…"},
		{"漢字漢字漢字", 6, "漢字…"},
		{"no width", 0, "no width"},
	} {
		if got := s.cut(test.text, test.width); got != test.want {
			t.Errorf("cut(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
	}
	if got := pad("漢字", 6) + "|"; got != "漢字  |" {
		t.Errorf("padded to %q", got)
	}
	want := []string{"a few words", "and", "/one/very/long/path", "more"}
	if diff := cmp.Diff(want, wrap("a few words and /one/very/long/path more", 12)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestADiffIsHarmlessAndKeepsItsSpaces(t *testing.T) {
	if got := (&screen{}).paintDiff("+\t\x1b[2Kx\r\n"); got != "+\tx" {
		t.Errorf("painted %q", got)
	}
	if got := (&screen{colour: true}).paintDiff("+\tx"); got != "\x1b[32m+\tx\x1b[m" {
		t.Errorf("painted %q", got)
	}
}
