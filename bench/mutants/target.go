package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A target is what mutants are made of, and how many have to be noticed.
type target struct {
	n       int     // mutants
	goal    float64 // share of them that has to be killed
	reasons bool    // each survivor needs a reason in accepted.txt
	groups  []group // which get equal shares of the mutants
}

// A group is files that the same tests watch over.
type group struct {
	name   string
	files  []string // patterns, from the root of the tree
	stages []stage  // cheapest first; --quick runs the first alone
}

// A stage is some tests of one package. Empty patterns mean all.
type stage struct {
	pkg       string
	run, skip string
}

func (s stage) name() string {
	name := s.pkg
	if s.run != "" {
		name += " " + s.run
	}
	if s.skip != "" {
		name += " without " + s.skip
	}
	return name
}

// slowDoctor are the tests of the doctor that take longer than all others together.
const slowDoctor = "^(TestAnApprovalCoversWhatWillRun|TestWhatIsTooLargeToBeCoveredIsAskedAboutEveryTime)$"

// Tests of whole commands.
var scripts = stage{pkg: "internal/cli", run: "^TestScripts$/^(approve|check|configure|heal|heal-readonly|hostile|remove|report|secrets|test|usage|wrap)$"}

var targets = map[string]target{
	"doctor": {n: 60, goal: 0.90, reasons: true, groups: []group{
		{
			name: "consent",
			files: []string{
				"internal/doctor/approvals.go", "internal/doctor/approvalkey.go", "internal/doctor/cover.go",
				"internal/doctor/code.go", "internal/doctor/consent.go",
			},
			stages: []stage{
				{pkg: "internal/doctor", skip: slowDoctor},
				{pkg: "internal/doctor", run: "^TestWhatIsTooLargeToBeCoveredIsAskedAboutEveryTime$"},
				scripts,
				{pkg: "internal/clinic"},
				{pkg: "internal/doctor", run: "^TestAnApprovalCoversWhatWillRun$"},
			},
		},
		{
			name:  "store",
			files: []string{"internal/clientconfig/store.go"},
			stages: []stage{
				{pkg: "internal/clientconfig", skip: "^(TestRenaming|TestRemoving|TestElements|TestChanging|TestAdding|TestWrapping|TestHostile|TestStrict)"},
				{pkg: "internal/doctor", skip: slowDoctor},
				scripts,
			},
		},
		{
			name:  "redaction",
			files: []string{"internal/secret/*.go"},
			stages: []stage{
				{pkg: "internal/secret", skip: "^(TestAStreamHidesWhatTheWholeTextWould|TestHarmlessTokensStay|TestNoTextTakesLong|TestACanaryIsShownInNoEncodingAndNoSplit)$"},
				{pkg: "internal/secret"},
				{pkg: "internal/doctor", skip: slowDoctor},
				scripts,
			},
		},
		{
			name:  "fixes",
			files: []string{"internal/doctor/fix*.go"},
			stages: []stage{
				{pkg: "internal/doctor", skip: slowDoctor},
				scripts,
				{pkg: "internal/clinic"},
			},
		},
	}},
	"path": {n: 200, goal: 0.85, groups: []group{
		{name: "guard", files: []string{"internal/guard/*.go"}, stages: []stage{{pkg: "internal/guard"}, {pkg: "internal/app"}}},
		{name: "upstream", files: []string{"internal/upstream/*.go"}, stages: []stage{{pkg: "internal/upstream"}, {pkg: "internal/guard"}, {pkg: "internal/app"}}},
		{name: "front", files: []string{"internal/front/*.go"}, stages: []stage{{pkg: "internal/front"}, {pkg: "internal/app"}}},
		{name: "fault", files: []string{"fault/*.go"}, stages: []stage{{pkg: "fault"}, {pkg: "internal/guard"}, {pkg: "internal/doctor", skip: slowDoctor}}},
		{name: "wire", files: []string{"internal/wire/*.go"}, stages: []stage{{pkg: "internal/wire"}, {pkg: "internal/upstream"}, {pkg: "internal/front"}}},
	}},
}

func targetNames() string { return strings.Join(slices.Sorted(maps.Keys(targets)), "|") }

// A sequence is all mutants of a group, in the order in which they are tried.
type sequence struct {
	group
	order []mutant
	want  int
}

// sequences reads the files and shuffles their mutants: a turn for each operator, as
// there are far more conditions than anything else. The order depends on the seed and
// on the files alone.
func sequences(root string, t target, n int, seed uint64) ([]sequence, error) {
	all := make([]sequence, len(t.groups))
	for i, g := range t.groups {
		found, err := g.mutants(root)
		if err != nil {
			return nil, err
		}
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		rng.Shuffle(len(found), func(a, b int) { found[a], found[b] = found[b], found[a] })
		all[i] = sequence{group: g, order: inTurns(found), want: (n + i) / len(t.groups)}
	}
	return all, nil
}

// inTurns takes one mutant of each operator after the other, as long as there are any.
func inTurns(found []mutant) []mutant {
	turn := make([]int, len(found))
	index := make([]int, len(found))
	seen := make(map[operator]int)
	for i, m := range found {
		index[i], turn[i] = i, seen[m.Operator]
		seen[m.Operator]++
	}
	slices.SortStableFunc(index, func(a, b int) int {
		return cmp.Or(turn[a]-turn[b], slices.Index(operators, found[a].Operator)-slices.Index(operators, found[b].Operator))
	})
	sorted := make([]mutant, len(found))
	for i, at := range index {
		sorted[i] = found[at]
	}
	return sorted
}

func (g group) mutants(root string) ([]mutant, error) {
	var all []mutant
	for _, pattern := range g.files {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		found := 0
		for _, file := range files {
			if skipped(file) {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			mutants, err := mutantsOf(filepath.ToSlash(name), src)
			if err != nil {
				return nil, err
			}
			all = append(all, mutants...)
			found++
		}
		if found == 0 {
			return nil, fmt.Errorf("%s: %s matches no file", g.name, pattern)
		}
	}
	return all, nil
}

// skipped: tests, and what is not built here.
func skipped(file string) bool {
	name := strings.TrimSuffix(filepath.Base(file), ".go")
	for _, ending := range []string{"_test", "_windows", "_darwin", "_other"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}
