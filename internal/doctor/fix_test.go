package doctor

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/registry"
)

var update = flag.Bool("update", false, "write what the tests see into testdata")

// A fixScript is a txtar file: settings, a client's file before, what was found and
// what could be done, and the file after the first fix. $HOME stands for the home
// folder.
type fixScript struct {
	path, comment string
	files         []scriptFile
}

type scriptFile struct{ name, data string }

func readFixScript(t *testing.T, path string) *fixScript {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &fixScript{path: path}
	for line := range strings.SplitAfterSeq(string(data), "\n") {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if name, end := strings.CutSuffix(name, " --"); ok && end {
			s.files = append(s.files, scriptFile{name: name})
		} else if len(s.files) == 0 {
			s.comment += line
		} else {
			s.files[len(s.files)-1].data += line
		}
	}
	return s
}

func (s *fixScript) file(name string) string {
	for _, f := range s.files {
		if f.name == name {
			return f.data
		}
	}
	return ""
}

// all returns what the lines "name: value" of the part "given" say.
func (s *fixScript) all(name string) []string {
	var values []string
	for line := range strings.SplitSeq(s.file("given"), "\n") {
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			values = append(values, v)
		}
	}
	return values
}

func (s *fixScript) one(name string) string {
	if all := s.all(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// write keeps what is given and replaces what is wanted.
func (s *fixScript) write(t *testing.T, results []scriptFile) {
	t.Helper()
	var b strings.Builder
	b.WriteString(s.comment)
	given := func(f scriptFile) bool { return f.name == "given" || strings.HasPrefix(f.name, "before") }
	for _, f := range append(slices.DeleteFunc(slices.Clone(s.files), func(f scriptFile) bool { return !given(f) }), results...) {
		fmt.Fprintf(&b, "-- %s --\n%s", f.name, f.data)
	}
	if err := os.WriteFile(s.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFixes runs every script: before, evidence, cause, fixes, after.
func TestFixes(t *testing.T) {
	paths, err := filepath.Glob("testdata/fix/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	seen := make(map[string]bool)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			s := readFixScript(t, path)
			got, fixes := runFixScript(t, s)
			for _, f := range fixes {
				seen[f.Name] = true
				wantKnownClass(t, f)
			}
			if *update {
				s.write(t, got)
				return
			}
			for _, f := range got {
				if diff := cmp.Diff(s.file(f.name), f.data); diff != "" {
					t.Errorf("%s (-want +got):\n%s", f.name, diff)
				}
			}
		})
	}
	for _, k := range fixKinds {
		if !seen[k.name] {
			t.Errorf("no script offers the fix %q", k.name)
		}
	}
}

// wantKnownClass: a fix is never milder than its kind says.
func wantKnownClass(t *testing.T, f Fix) {
	t.Helper()
	strict := []Class{Auto, Ask, Never}
	for _, k := range fixKinds {
		if k.name == f.Name {
			if slices.Index(strict, f.Class) < slices.Index(strict, k.class) {
				t.Errorf("%s is of class %s, its kind of class %s", f.Name, f.Class, k.class)
			}
			return
		}
	}
	t.Errorf("the fix %q is not in the table", f.Name)
}

func runFixScript(t *testing.T, s *fixScript) ([]scriptFile, []Fix) {
	home := t.TempDir()
	at := func(text string) string { return strings.ReplaceAll(text, "$HOME", home) }
	goos := s.one("os")
	if goos == "" {
		goos = "linux"
	}
	system := clientconfig.System{OS: goos, Home: home, Project: filepath.Join(home, "project"), Getenv: func(string) string { return "" }}
	client := clientconfig.ByID(s.one("client"))
	if client == nil {
		t.Fatalf("no client %q", s.one("client"))
	}
	for _, f := range s.files {
		name, ok := strings.CutPrefix(f.name, "before ")
		if !ok {
			continue
		}
		name = at(name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(at(f.data)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := scriptCase(t, s, system.Find(client))
	finding := scriptFinding(t, s, c)
	if finding.Stage == "" {
		t.Fatal("nothing was found")
	}
	fixes := scriptSources(s, system, at).fixes(t.Context(), c, finding)
	finding.Fixes, c.Cause = fixes, finding
	return describeFixes(t, c, finding, fixes, func(text string) string { return strings.ReplaceAll(text, home, "$HOME") }), fixes
}

func scriptCase(t *testing.T, s *fixScript, files []*clientconfig.File) *Case {
	t.Helper()
	cases := (&Doctor{}).admit(files, Which{})
	named := func(c *Case) bool { return c.Name == s.one("server") }
	ill := func(c *Case) bool { return named(c) && c.Cause != nil }
	for _, is := range []func(*Case) bool{ill, named} {
		if i := slices.IndexFunc(cases, is); i >= 0 {
			return cases[i]
		}
	}
	t.Fatalf("no case %q in %d files", s.one("server"), len(files))
	return nil
}

// scriptFinding is the one that the script names, the one that the evidence leads
// to, or the one that the file shows.
func scriptFinding(t *testing.T, s *fixScript, c *Case) *Finding {
	t.Helper()
	port, _ := strconv.Atoi(s.one("port"))
	pieces := fault.Pieces{
		Variable: s.one("variable"), Command: s.one("command"), Package: s.one("package"), Path: s.one("missing"),
		Host: s.one("host"), Port: port,
	}
	if id := s.one("finding"); id != "" {
		stage, kind, _ := strings.Cut(id, ".")
		c.saw = &Sighting{Fault: &fault.Fault{Evidence: fault.Evidence{Stderr: s.all("stderr")}}}
		return &Finding{ID: id, Stage: Stage(stage), Kind: kind, At: c.At, pieces: pieces, lost: s.one("unnamed") == "yes", Evidence: s.all("stderr")}
	}
	if stage := s.one("stage"); stage != "" {
		e := fault.Evidence{Moment: fault.Moment(stage), Stderr: stderrOf(s, c), Errno: s.one("errno"), Text: s.one("text"), Challenge: s.one("challenge")}
		if code, err := strconv.Atoi(s.one("exit")); err == nil {
			e.Exited, e.ExitCode = true, code
		}
		e.HTTPStatus, _ = strconv.Atoi(s.one("status"))
		saw := &Sighting{Steps: []Step{{Stage: Stage(stage)}}, Fault: &fault.Fault{Evidence: e}, Transport: clientconfig.Transport(s.one("speaks"))}
		c.saw = saw
		return diagnosed(c, saw, fault.Diagnose(e))
	}
	if c.Cause != nil {
		return c.Cause
	}
	if len(c.Also) > 0 {
		return &c.Also[0]
	}
	return &Finding{}
}

func scriptSources(s *fixScript, system clientconfig.System, at func(string) string) sources {
	src := sources{
		os: machine.OS(system.OS), home: system.Home, system: system, project: system.Project,
		self: s.one("self"), path: s.one("PATH"), names: strings.Fields(s.one("environ")),
		exists: func(path string) bool {
			return slices.ContainsFunc(s.all("exists"), func(e string) bool { return at(e) == path })
		},
		programs: func(_ context.Context, name string) []machine.Found {
			var all []machine.Found
			for _, line := range s.all("program") {
				if f := strings.Fields(line); f[0] == name {
					all = append(all, machine.Found{Path: at(f[1]), From: f[2], Version: f[3]})
				}
			}
			return all
		},
		ports: func(context.Context) machine.Ports {
			var all machine.Ports
			for _, line := range s.all("published") {
				p := machine.Published{Protocol: "tcp"}
				fmt.Sscan(line, &p.Service, &p.Target, &p.Published, &p.File, &p.Line)
				p.File = at(p.File)
				all = append(all, p)
			}
			return all
		},
		answers: func(_ context.Context, host string, port int) bool {
			return slices.Contains(s.all("answers"), net.JoinHostPort(host, strconv.Itoa(port)))
		},
		siblings: func(dir string) []string {
			for _, line := range s.all("files") {
				if f := strings.Fields(line); f[0] == dir {
					return f[1:]
				}
			}
			return nil
		},
		lost:    func(name string) bool { return slices.Contains(s.all("lost"), name) },
		desktop: s.one("desktop") == "yes",
		usedBy:  func(string) (bool, bool) { return s.one("used") == "yes", s.one("used") != "unknown" },
	}
	src.dotenv = func() (names []machine.DotenvName) {
		for _, line := range s.all("dotenv") {
			f := strings.Fields(line)
			names = append(names, machine.DotenvName{Name: f[0], File: f[1]})
		}
		return names
	}
	for _, line := range s.all("registry") {
		f := strings.Fields(line)
		src.variables = append(src.variables, registry.Variable{Name: f[0], Required: slices.Contains(f, "required"), Secret: slices.Contains(f, "secret"), Help: f[len(f)-1]})
	}
	return src
}

func describeFixes(t *testing.T, c *Case, finding *Finding, fixes []Fix, short func(string) string) []scriptFile {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "id: %s\n", finding.ID)
	for _, f := range fixes {
		fmt.Fprintf(&b, "fix: %s %s\n  does: %s\n", f.Name, f.Class, f.Does)
		if f.Run != "" {
			fmt.Fprintf(&b, "  run: %s\n", f.Run)
		}
		if f.wait > 0 {
			fmt.Fprintf(&b, "  wait: %s\n", f.wait.Round(time.Second))
		}
		for _, e := range f.Edits {
			fmt.Fprintf(&b, "  edit: %s %s\n", e.File, e.Path)
		}
	}
	if finding.Help != "" {
		fmt.Fprintf(&b, "help: %s\n", finding.Help)
	}
	results := []scriptFile{{"want", short(b.String())}}
	if len(fixes) == 0 || len(fixes[0].Edits) == 0 {
		return append(results, scriptFile{"after", "unchanged\n"})
	}
	w, err := newWorkspace(c.file).with(fixes[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range w.edited() {
		results = append(results, scriptFile{"after " + short(path), short(string(w.files[path].Bytes()))})
	}
	return results
}

// stderrOf is what the server wrote, with the home folder of the test.
func stderrOf(s *fixScript, c *Case) []string {
	home, _, _ := strings.Cut(c.file.Path, "/.")
	var lines []string
	for _, l := range s.all("stderr") {
		lines = append(lines, strings.ReplaceAll(l, "$HOME", home))
	}
	return lines
}
