package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

// schemaVersion grows when a field changes its meaning or goes away. Fields may
// be added without that.
const schemaVersion = 1

// answer is what every command's JSON begins with.
type answer struct {
	SchemaVersion int    `json:"schemaVersion"`
	Command       string `json:"command"`
	ExitCode      int    `json:"exitCode"`
}

func answerTo(command string, code int) answer {
	return answer{SchemaVersion: schemaVersion, Command: command, ExitCode: code}
}

// printJSON writes the one object that is a command's answer.
func (p *program) printJSON(v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := p.env.Stdout.Write(escaped(text.Bytes()))
	return err
}

// escaped writes what the text output leaves out as \u…, which loses nothing: JSON
// is looked at on terminals, too. Below 0x20 the encoder has done so, and all that is
// not ASCII stands in strings.
func escaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch high, low := utf16.EncodeRune(r); {
		case r < 0x7f || r == utf8.RuneError || !harmful(r):
			out = append(out, text[:n]...)
		case high != utf8.RuneError:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[n:]
	}
	return out
}

// caseJSON is a case with its times.
type caseJSON struct {
	*doctor.Case
	Ladder []stepJSON `json:"ladder,omitempty"`
	TookMs int64      `json:"tookMs"`
}

type stepJSON struct {
	doctor.Step
	TookMs int64 `json:"tookMs"`
}

func jsonOf(c *doctor.Case) *caseJSON {
	if c == nil {
		return nil
	}
	j := &caseJSON{Case: c, TookMs: c.Took.Milliseconds()}
	for _, s := range c.Ladder {
		j.Ladder = append(j.Ladder, stepJSON{s, s.Took.Milliseconds()})
	}
	return j
}

// healingJSON is a healing whose case has its times.
type healingJSON struct {
	*doctor.Healing
	Case *caseJSON `json:"case,omitempty"`
}

func jsonOfHealing(h *doctor.Healing) *healingJSON {
	if h == nil {
		return nil
	}
	return &healingJSON{h, jsonOf(h.Case)}
}

type checkJSON struct {
	answer
	Summary summaryJSON `json:"summary"`
	Cases   []*caseJSON `json:"cases"`
	// Looked are the clients that were looked for, Found those that have a file.
	Looked []string `json:"looked"`
	Found  []string `json:"found"`
	TookMs int64    `json:"tookMs"`
	Next   string   `json:"next,omitempty"`
}

// summaryJSON counts the cases by what they mean to somebody who wants to work: those
// of servers, and those of files that are broken as a whole.
type summaryJSON struct {
	Servers int `json:"servers"`
	Files   int `json:"files"`
	Healthy int `json:"healthy"`
	Warned  int `json:"warned"`
	Broken  int `json:"broken"`
	Aside   int `json:"aside"`
}

func checkAnswer(r *doctor.Report, o selection, servers []string, code int) checkJSON {
	j := checkJSON{answer: answerTo("check", code), Cases: []*caseJSON{}, Looked: []string{}, Found: []string{},
		TookMs: r.Took.Milliseconds()}
	_, j.Next = nextStep(r, o, servers)
	for _, c := range r.Cases {
		j.Cases = append(j.Cases, jsonOf(c))
		if c.Name != "" {
			j.Summary.Servers++
		} else {
			j.Summary.Files++
		}
		switch standingOf(c) {
		case fine:
			j.Summary.Healthy++
		case warned:
			j.Summary.Warned++
		case broken:
			j.Summary.Broken++
		case aside:
			j.Summary.Aside++
		}
	}
	for _, c := range r.Looked {
		j.Looked = append(j.Looked, c.ID)
	}
	for _, c := range r.Found {
		j.Found = append(j.Found, c.ID)
	}
	return j
}

// errorJSON is the answer of a command that could not do its work.
type errorJSON struct {
	answer
	Error struct {
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	} `json:"error"`
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// endJSON answers and ends with a code.
func (p *program) endJSON(v any, code int) error {
	if err := p.printJSON(v); err != nil {
		return err
	}
	return exit(code)
}
