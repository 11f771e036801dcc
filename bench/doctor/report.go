package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rogpeppe/go-internal/txtar"
)

// totals are the figures that decide.
type totals struct {
	Setups  int `json:"setups"`
	Broken  int `json:"broken"`
	Void    int `json:"void"`
	Failed  int `json:"failed"` // mcpmend crashed, hung or printed no JSON
	Right   int `json:"rightCause"`
	Well    int `json:"restRight"` // state, class, exit code and warnings are right, too
	Named   int `json:"named"`
	Auto    int `json:"auto"`
	Healed  int `json:"healed"`
	Asks    int `json:"asks"`
	Agreed  int `json:"healedWhenAgreed"`
	Leave   int `json:"leave"`
	Damaged int `json:"filesDamaged"`
	Ran     int `json:"wrongProgramsRun"`
	Leaks   int `json:"secretsShown"`
	Touched int `json:"touched"`
	Differs int `json:"judgedOtherwise"`
	// Of those that the real client was asked about after healing.
	Asked     int `json:"realClientsAsked"`
	Connected int `json:"realClientsConnected"`
}

// count adds up. A set-up that mcpmend did not get through counts as all wrong.
func (r *result) count() {
	t := &r.Totals
	for _, v := range r.Verdicts {
		if v.Void != "" {
			t.Void++
			continue
		}
		t.Setups++
		add := func(to *int, when bool) {
			if when {
				*to++
			}
		}
		add(&t.Failed, v.Error != "")
		add(&t.Broken, v.broken)
		add(&t.Right, v.Right)
		add(&t.Well, v.Right && len(v.Rest) == 0)
		add(&t.Named, v.Named && v.broken)
		add(&t.Auto, v.Auto)
		add(&t.Healed, v.Auto && v.Healed)
		add(&t.Asks, v.Asks)
		add(&t.Agreed, v.Asks && v.HealedYes)
		add(&t.Leave, v.leave)
		add(&t.Damaged, len(v.Damaged) > 0)
		add(&t.Ran, len(v.Ran) > 0)
		add(&t.Leaks, len(v.Leaks) > 0)
		add(&t.Touched, len(v.Touched) > 0)
		add(&t.Differs, len(v.Differs) > 0)
		add(&t.Asked, v.Real != nil)
		add(&t.Connected, v.Real != nil && v.Real.Connected)
	}
	most := func(n, of int) bool { return 100*n >= 95*of }
	r.Void = 10*t.Void > len(r.Verdicts)
	r.OK = most(t.Right, t.Setups) && most(t.Well, t.Setups) && most(t.Healed, t.Auto) && most(t.Agreed, t.Asks) &&
		t.Damaged+t.Ran+t.Leaks+t.Touched+t.Failed+t.Differs == 0 && t.Connected == t.Asked &&
		!slices.ContainsFunc(r.Feats, func(f feat) bool { return !f.OK })
}

func (r *result) print(w io.Writer, verbose bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "set-up\tclient\tcause\tstate\tbest fix\thealed\ts")
	for _, v := range r.Verdicts {
		if v.Void != "" {
			fmt.Fprintf(tw, "%s\t%s\t%s\t\t\t\t\n", v.Name, v.Client, v.Void)
			continue
		}
		healed := ""
		switch {
		case v.Auto && v.Asks:
			healed = yes(v.Healed) + ", asked: " + yes(v.HealedYes)
		case v.Auto:
			healed = yes(v.Healed)
		case v.Asks:
			healed = "asked: " + yes(v.HealedYes)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s%s\t%s\t%s\t%s\t%.1f\n", v.Name, v.Client, v.Cause, mark(v.Right), v.State, v.Fix, healed, v.Secs)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	r.printWrong(w, verbose)
	r.printOthers(w)
	r.printReal(w)
	for _, f := range r.Feats {
		fmt.Fprintf(w, "%-7s %s: %s\n", map[bool]string{true: "ok", false: "FAILED"}[f.OK], f.Name, f.Text)
	}
	t := r.Totals
	verdict := "ok"
	if !r.OK {
		verdict = "FAILED"
	}
	if r.Void {
		verdict = "VOID, too many set-ups cannot be made on this machine"
	}
	_, err := fmt.Fprintf(w, "set-ups %d (broken %d, must not be touched %d, void %d) · right cause %s · all else right, too %s · healed unasked %s · healed when agreed %s · files damaged %d · wrong programs run %d · secrets shown %d · touched %d · judged otherwise %d · real clients connect after healing %d/%d · crashed %d · seed %d · %s\n",
		t.Setups, t.Broken, t.Leave, t.Void, of(t.Right, t.Setups), of(t.Well, t.Setups), of(t.Healed, t.Auto), of(t.Agreed, t.Asks),
		t.Damaged, t.Ran, t.Leaks, t.Touched, t.Differs, t.Connected, t.Asked, t.Failed, r.Seed, verdict)
	return err
}

func of(n, all int) string {
	return fmt.Sprintf("%d/%d (%.1f %%)", n, all, 100*float64(n)/float64(max(all, 1)))
}

func yes(ok bool) string { return map[bool]string{true: "yes", false: "NO"}[ok] }

func mark(right bool) string {
	if right {
		return ""
	}
	return " WRONG"
}

// printReal is what became of the healing in the eyes of the clients themselves.
func (r *result) printReal(w io.Writer) {
	asked, connected := map[string]int{}, map[string]int{}
	for _, v := range r.Verdicts {
		if v.Real != nil {
			asked[v.Real.Client]++
			if v.Real.Connected {
				connected[v.Real.Client]++
			}
		}
	}
	if len(asked) == 0 {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "healed in the file of\tset-ups\tit says connected")
	for _, client := range slices.Sorted(maps.Keys(asked)) {
		fmt.Fprintf(tw, "%s\t%d\t%d\n", client, asked[client], connected[client])
	}
	_ = tw.Flush()
	fmt.Fprintln(w)
}

func (r *result) printWrong(w io.Writer, verbose bool) {
	for _, v := range r.Verdicts {
		var lines []string
		if v.Error != "" {
			lines = append(lines, "error: "+short(v.Error))
		}
		if v.Void == "" && !v.Right {
			lines = append(lines, fmt.Sprintf("cause: got %q", v.Cause))
		}
		for _, x := range v.Rest {
			lines = append(lines, "also wrong: "+x)
		}
		if v.Auto && !v.Healed || v.Asks && !v.HealedYes {
			for _, x := range v.Notes {
				lines = append(lines, "healing: "+x)
			}
		}
		for _, group := range []struct {
			name string
			of   []string
		}{{"DAMAGED", v.Damaged}, {"RAN", v.Ran}, {"SECRET", v.Leaks}, {"JUDGED OTHERWISE", v.Differs}} {
			for _, x := range group.of {
				lines = append(lines, group.name+": "+x)
			}
		}
		if v.Real != nil && !v.Real.Connected {
			lines = append(lines, fmt.Sprintf("%s does not connect to it: %s", v.Real.Client, v.Real.Text))
		}
		if len(lines) == 0 && !verbose {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", v.Name)
		for _, l := range lines {
			fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(l, "\n", "\n    "))
		}
		if verbose {
			fmt.Fprintf(w, "%s\n", strings.Join(v.said, "\n"))
		}
	}
	fmt.Fprintln(w)
}

// short is the beginning of a text that may be a stack trace.
func short(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(len(lines), 8)], "\n")
}

// lineDiff shows which lines differ, without telling apart moved ones.
func lineDiff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out strings.Builder
	for _, l := range a {
		fmt.Fprintf(&out, "- %q\n", l)
	}
	for _, l := range b {
		fmt.Fprintf(&out, "+ %q\n", l)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// updated is a set-up with other wanted files.
func updated(data []byte, files map[string]string) []byte {
	a := txtar.Parse(data)
	for name, text := range files {
		i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == name })
		if i < 0 {
			a.Files = append(a.Files, txtar.File{Name: name})
			i = len(a.Files) - 1
		}
		a.Files[i].Data = []byte(text)
	}
	return txtar.Format(a)
}
