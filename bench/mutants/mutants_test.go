package main

import (
	"fmt"
	"go/format"
	"os"
	"slices"
	"strings"
	"testing"
)

const sample = `package p

import "fmt"

const most = 20

func f(a, b int, s string) (bool, error) {
	if a < most && s != "x" {
		return false, nil
	}
	for b < 3 {
		b++
		fmt.Println("a number", 7)
	}
	return b > 0o600, nil
}

type t struct{}

func (t) String() string { return fmt.Sprint(1 + 2) }
`

func TestEachOperatorFindsItsPlaces(t *testing.T) {
	got, err := mutantsOf("p.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, m := range got {
		changes = append(changes, strings.TrimSpace(string(m.Operator)+" "+m.Before+" -> "+m.After))
		if changed := m.apply([]byte(sample)); string(changed) == sample {
			t.Errorf("%s changes nothing", m.ID)
		} else if _, err := format.Source(changed); err != nil {
			t.Errorf("%s: %v", m.ID, err)
		}
	}
	for _, want := range []string{
		"constant 20 -> 21",
		`negate a < most && s != "x" -> !(a < most && s != "x")`,
		"negate a < most -> !(a < most)",
		`constant "x" -> "x~"`,
		"drop return false, nil ->",
		"negate b < 3 -> !(b < 3)",
		"drop b++ ->",
		"constant 0o600 -> 0o601",
		"return return b > 0o600, nil -> return *new(bool), *new(error)",
	} {
		if !slices.Contains(changes, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(changes, "\n"))
		}
	}
	for _, c := range changes {
		if c == "constant 7 -> 8" || c == "constant 1 -> 2" || strings.HasPrefix(c, "drop fmt") {
			t.Errorf("%q is about text", c)
		}
	}
}

func TestAMutantKeepsItsIDWhenLinesMove(t *testing.T) {
	ids := func(src string) (ids []string) {
		found, err := mutantsOf("p.go", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			ids = append(ids, m.ID)
		}
		return ids
	}
	before := ids(sample)
	if after := ids(strings.Replace(sample, "const", "\n// More.\nconst", 1)); !slices.Equal(before, after) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	slices.Sort(before)
	if len(slices.Compact(slices.Clone(before))) != len(before) {
		t.Errorf("two mutants have the same ID:\n%s", strings.Join(before, "\n"))
	}
}

func TestTheSeedChoosesAndEachOperatorHasItsTurn(t *testing.T) {
	order := func(seed uint64) (ids []string) {
		all, err := sequences("../..", targets["doctor"], 60, seed)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, s := range all {
			total += s.want
			for i, m := range s.order[:s.want] {
				ids = append(ids, m.ID)
				if m.Operator != operators[i%len(operators)] {
					t.Fatalf("%s: number %d is %s", s.name, i, m.Operator)
				}
			}
		}
		if total != 60 {
			t.Errorf("%d mutants are wanted of 60", total)
		}
		return ids
	}
	if !slices.Equal(order(1), order(1)) {
		t.Error("the same seed chooses others")
	}
	if slices.Equal(order(1), order(2)) {
		t.Error("another seed chooses the same")
	}
}

func TestEveryTargetHasFilesAndTests(t *testing.T) {
	for name, target := range targets {
		if _, err := sequences("../..", target, target.n, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, g := range target.groups {
			if len(g.stages) == 0 {
				t.Errorf("%s: nothing watches over %s", name, g.name)
			}
		}
	}
}

func TestAReasonIsCheckedAgainstTheRun(t *testing.T) {
	reasons, err := parseAccepted("# a comment\n\nf.go a: drop x\n\tthe same\n\tin two lines\nf.go b: drop y\n\twrong\nf.go c: drop z\n\tgone\ng.go d: drop z\n\tanother target\n")
	if err != nil || reasons["f.go a: drop x"] != "the same in two lines" {
		t.Fatalf("got %v, %v", reasons, err)
	}
	a, b := mutant{ID: "f.go a: drop x", File: "f.go"}, mutant{ID: "f.go b: drop y", File: "f.go"}
	results := []result{{mutant: a, Compiles: true}, {mutant: b, Compiles: true, Killed: true, By: "TestY"}}
	f := sum(results, reasons)
	if f.Killed != 1 || f.Survived != 1 || f.Accepted != 1 || f.Share != 0.5 {
		t.Errorf("got %+v", f)
	}
	reasons[a.ID] = "equivalent: it is the same"
	if f := sum(results, reasons); f.Same != 1 || f.Share != 1 {
		t.Errorf("got %+v, want the share of those that differ", f)
	}
	wrong := outdated(reasons, []sequence{{order: []mutant{a, b}}}, results)
	if want := []string{"f.go b: drop y: killed by TestY", "f.go c: drop z: no such mutant any more"}; !slices.Equal(wrong, want) {
		t.Errorf("got %q, want %q", wrong, want)
	}
	for _, bad := range []string{"\ta reason alone\n", "f.go a: drop x\n", "a\n\tx\na\n\ty\n"} {
		if _, err := parseAccepted(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestTheKillerIsTheInnermostTest(t *testing.T) {
	for text, want := range map[string]string{
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b_c (0.1s)\n        x_test.go:1: no\n--- FAIL: TestD (0s)\nFAIL\n": "TestA/b_c",
		"panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestA/b (59s)\n\t\tTestB (1s)\n":                       "TestA hangs",
		"panic: no test is named\n": "",
	} {
		got, hangs := killer([]byte(text))
		if hangs {
			got += " hangs"
		}
		if got != want {
			t.Errorf("got %q, want %q, in\n%s", got, want, text)
		}
	}
}

func TestAllMutantsOfAFileFitIntoOne(t *testing.T) {
	for _, file := range []string{"mutate.go", "judge.go", "../../internal/secret/scrub.go", "../../internal/doctor/cover.go"} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := mutantsOf(file, src)
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[int]mutant)
		for i, m := range found {
			all[i+1] = m
		}
		got := switched(src, all)
		if _, err := format.Source(got); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if a, b := strings.Count(string(src), "\n"), strings.Count(string(got), "\n"); a != b {
			t.Errorf("%s: %d lines became %d", file, a, b)
		}
		for n := range all {
			if !strings.Contains(string(got), fmt.Sprintf("mutantOn(%d)", n)) && !strings.Contains(string(got), fmt.Sprintf("mutantPick(%d,", n)) {
				t.Errorf("%s: mutant %d is lost", file, n)
			}
		}
	}
}

func TestASwitchChangesOnePlace(t *testing.T) {
	src := []byte("if a && b { f(1) }")
	all := map[int]mutant{
		1: {Operator: negate, from: 3, to: 9},
		2: {Operator: negate, from: 3, to: 4},
		3: {Operator: drop, from: 12, to: 16},
		4: {Operator: early, from: 12, to: 12, with: "return; "},
		5: {Operator: constant, from: 14, to: 15, with: "2"},
	}
	want := "if ((((a) != mutantOn(2)) && b) != mutantOn(1)) { if mutantOn(4) { return }; if !mutantOn(3) { f(mutantPick(5, 1, 2)) } }"
	if got := string(switched(src, all)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheMutantThatDoesNotCompileIsLeftOut(t *testing.T) {
	picked := []mutant{
		{ID: "a", File: "p/x.go", Line: 3, from: 30}, {ID: "b", File: "p/x.go", Line: 7, from: 70},
		{ID: "c", File: "p/x.go", Line: 20, from: 200}, {ID: "d", File: "p/y.go", Line: 7, from: 70},
	}
	left := without(picked, []byte("# p\n../tmp/p-x.go:9:1: missing return\n../tmp/p-x.go:20:4: mismatched types\n"))
	var ids string
	for _, m := range left {
		ids += m.ID
	}
	if ids != "ad" {
		t.Errorf("%q are left, want a and d", ids)
	}
}

// Some tests fail if one of their parts runs alone.
func TestAPartIsConfirmedByTheWholeTestToo(t *testing.T) {
	got := stage{pkg: "p", skip: "x"}.alone("TestA/b (c)")
	want := []stage{{pkg: "p", run: `^TestA$/^b \(c\)$`}, {pkg: "p", run: "^TestA$"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
