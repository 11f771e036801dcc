package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Building tests takes longer than running them. So the chosen mutants are all built into
// the same programs, each behind a switch, and the environment of the first process says
// which one is on: that is the one thing that all processes of a run can see, also
// those that a test starts with an environment of its own.

const switchVariable = "MUTANT_ON"

// switchFile goes into each package that is changed.
const switchFile = `package %s

import (
	"os"
	"strconv"
	"strings"
)

var mutantNumber = func() int {
	environ, _ := os.ReadFile("/proc/1/environ")
	for v := range strings.SplitSeq(string(environ), "\x00") {
		if number, ok := strings.CutPrefix(v, "` + switchVariable + `="); ok {
			n, _ := strconv.Atoi(number)
			return n
		}
	}
	return 0
}()

func mutantOn(n int) bool { return n == mutantNumber }

func mutantPick[T any](n int, was, is T) T {
	if mutantOn(n) {
		return is
	}
	return was
}
`

// An insertion is text at an offset. Where several are at the same, lower ranks go first.
type insertion struct {
	at, rank, size int
	text           string
}

// switched returns the file with all its mutants, by their numbers, behind switches. Lines
// stay where they are.
func switched(src []byte, mutants map[int]mutant) []byte {
	var all []insertion
	add := func(m mutant, before, after string) {
		size := m.to - m.from
		// What is around goes on the outside.
		all = append(all, insertion{m.from, 2, -size, before}, insertion{m.to, 0, size, after})
	}
	for n, m := range mutants {
		switch m.Operator {
		case negate:
			add(m, "((", fmt.Sprintf(") != mutantOn(%d))", n))
		case drop:
			add(m, fmt.Sprintf("if !mutantOn(%d) { ", n), " }")
		case constant:
			add(m, fmt.Sprintf("mutantPick(%d, ", n), ", "+m.with+")")
		case early:
			all = append(all, insertion{m.from, 1, 0, fmt.Sprintf("if mutantOn(%d) { %s }; ", n, strings.TrimSuffix(m.with, "; "))})
		}
	}
	slices.SortFunc(all, func(a, b insertion) int {
		return cmp.Or(a.at-b.at, a.rank-b.rank, a.size-b.size, strings.Compare(a.text, b.text))
	})
	var out []byte
	done := 0
	for _, i := range all {
		out = append(append(out, src[done:i.at]...), i.text...)
		done = i.at
	}
	return append(out, src[done:]...)
}

// combine builds the tests with all mutants that are likely to be tried. Those that do not
// compile behind a switch, such as a constant that has to be one, are left to be built alone.
func (j *judge) combine(ctx context.Context, all []sequence) error {
	var picked []mutant
	var stages []stage
	for _, s := range all {
		picked = append(picked, s.order[:min(len(s.order), s.want+s.want/4+1)]...)
		stages = append(stages, s.stages...)
	}
	b := &bed{judge: j, dir: filepath.Join(j.dir, "combined"), built: make(map[string]bool)}
	b.programs = b.dir
	if err := os.MkdirAll(filepath.Join(b.dir, "tmp"), 0o700); err != nil {
		return err
	}
	j.tree = b
	for {
		if err := j.writeSwitched(picked); err != nil {
			return err
		}
		text, err := j.buildSwitched(ctx, picked)
		if err == nil {
			break
		}
		left := without(picked, text)
		if len(left) == len(picked) || ctx.Err() != nil {
			return fmt.Errorf("building all mutants: %w\n%s", err, text)
		}
		picked = left
	}
	for _, s := range stages {
		if text, err := b.build(ctx, s.pkg); err != nil {
			return fmt.Errorf("building the tests of %s: %w\n%s", s.pkg, err, text)
		}
	}
	fmt.Fprintf(os.Stderr, "%d mutants are built together\n", len(picked))
	return nil
}

// writeSwitched writes the changed files and the overlay that names them.
func (j *judge) writeSwitched(picked []mutant) error {
	j.numbers = make(map[string]int)
	files := make(map[string]map[int]mutant)
	for i, m := range picked {
		j.numbers[m.ID] = i + 1
		if files[m.File] == nil {
			files[m.File] = make(map[int]mutant)
		}
		files[m.File][i+1] = m
	}
	replace := make(map[string]string)
	write := func(name, text string) error {
		to := filepath.Join(j.tree.dir, flat(name))
		replace[filepath.Join(j.root, filepath.FromSlash(name))] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	for file, mutants := range files {
		src, err := os.ReadFile(filepath.Join(j.root, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		if err := write(file, string(switched(src, mutants))); err != nil {
			return err
		}
		dir := path.Dir(file)
		if err := write(path.Join(dir, "mutant_switch.go"), fmt.Sprintf(switchFile, path.Base(dir))); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	j.tree.overlay = filepath.Join(j.tree.dir, "overlay.json")
	return os.WriteFile(j.tree.overlay, overlay, 0o600)
}

func (j *judge) buildSwitched(ctx context.Context, picked []mutant) ([]byte, error) {
	args := []string{"build", "-gcflags=-e", "-overlay", j.tree.overlay}
	var dirs []string
	for _, m := range picked {
		dirs = append(dirs, "./"+path.Dir(m.File))
	}
	slices.Sort(dirs)
	cmd := exec.CommandContext(ctx, "go", append(args, slices.Compact(dirs)...)...)
	cmd.Dir = j.root
	return cmd.CombinedOutput()
}

var compileError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`)

// without leaves out those mutants of which the compiler complains: the last one that
// begins at the line or above it, since a missing return is noticed at the end.
func without(picked []mutant, text []byte) []mutant {
	bad := make(map[string]bool)
	for _, e := range compileError.FindAllSubmatch(text, -1) {
		file := filepath.Base(string(e[1]))
		line, _ := strconv.Atoi(string(e[2]))
		var blamed mutant
		for _, m := range picked {
			if flat(m.File) == file && m.Line <= line && m.from >= blamed.from {
				blamed = m
			}
		}
		bad[blamed.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(picked), func(m mutant) bool { return bad[m.ID] })
}

// flat is the name under which a changed file is kept.
func flat(file string) string { return strings.ReplaceAll(file, "/", "-") }
