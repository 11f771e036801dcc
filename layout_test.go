package mcpmend_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/mcpmend/mcpmend"

// A room is one package of the house and what it may import of ours.
type room struct {
	dir     string // relative to the root of the repository, "." is the root package
	imports []string
	why     string
}

// everything stands for all rooms further down in the map.
const everything = "*"

// house is the map of docs/ARCHITECTURE.md. It is ordered: a room may only name
// rooms further down. Rooms that do not exist yet are already in their place;
// a package that is not here has no place until somebody gives it one.
var house = []room{
	{"examples/middleware", []string{"."},
		"an example is somebody else's program: what it cannot do with the library's face, nobody can"},
	{"examples/transport", []string{"."},
		"an example is somebody else's program: what it cannot do with the library's face, nobody can"},
	{"cmd/mcpmend", []string{"internal/cli"},
		"signals and the exit code are all a main may know, so that tests can run the program in-process"},
	{"internal/cli", []string{"internal/app", "internal/doctor", "internal/clientconfig", "internal/registry", "fault", "internal/secret"},
		"what a person types is translated here; the rooms on the path of a call are put together by app, not by a command"},
	{"internal/app", []string{everything},
		"app alone knows everybody: that is what allows the others not to know each other"},
	{".", []string{"internal/guard", "arguments", "internal/upstream", "fault", "internal/wire"},
		"the library is one guarded server; it must not drag in fronts, configuration files or a command line"},

	{"internal/front", []string{"internal/catalogue", "fault", "internal/wire"},
		"a client names tools and never servers, so a front needs the catalogue and nothing behind it"},
	{"internal/catalogue", []string{"internal/guard", "arguments", "fault", "internal/wire"},
		"a name leads to a guarded server; a call can then not slip past its guard"},
	{"internal/guard", []string{"internal/upstream", "arguments", "fault", "internal/wire"},
		"the guard settles the call and does not care who asked"},
	{"internal/upstream", []string{"fault", "internal/wire", "internal/secret"},
		"a connection reports evidence; what to do about it is decided above"},

	{"internal/clinic", []string{"internal/doctor", "internal/clientconfig", "internal/secret", "fault", "internal/wire"},
		"an agent asks for what a person could type; it must not reach the path of a call, whose bytes alone it reads in the same way, nor anything the doctor would not do"},
	{"internal/doctor", []string{"internal/clientconfig", "internal/registry", "internal/machine", "fault", "internal/secret"},
		"healing a file must work while no gateway runs; it probes through a func that app fills in"},
	{"internal/advisor", []string{"fault", "internal/secret"},
		"beside the path: asked through a func, so that no call needs a model"},
	{"internal/task", []string{"fault"},
		"beside the path: plain sessions pay nothing for tasks"},
	{"internal/console", []string{"fault"},
		"beside the path: it shows pictures that others publish and touches nothing"},
	{"internal/state/sqlite", []string{"internal/state"},
		"an engine stands behind the small interface of state"},
	{"internal/state/nats", []string{"internal/state"},
		"an engine stands behind the small interface of state"},

	{"internal/state", nil,
		"what outlives the process must not change its shape because a room did"},
	{"internal/clientconfig", nil,
		"other programs' files are read and edited without knowing what we do with them"},
	{"internal/machine", nil,
		"what is where on this machine is a fact; what follows from it is the doctor's business"},
	{"internal/registry", nil,
		"what others publish about servers is read and kept; what to make of it is decided elsewhere"},
	{"arguments", nil,
		"pure functions: a schema and arguments in, a verdict out"},
	{"fault", nil,
		"pure functions: everybody speaks in its words, so it can depend on nobody"},
	{"internal/wire", nil,
		"bytes only: it knows no server, no client and no policy"},
	{"internal/secret", nil,
		"pure functions: whoever shows a text must be able to ask, so it can depend on nobody"},
}

// A guest is a module of somebody else.
type guest struct {
	module string
	rooms  []string // who may import it outside of tests
	why    string
}

var guests = []guest{
	{"github.com/modelcontextprotocol/go-sdk", []string{"examples/middleware", "examples/transport", ".", "internal/front", "internal/upstream", "internal/clinic"},
		"the SDK at the edges only, where a Go program or OAuth meets us; inside, messages are bytes"},
	{"github.com/santhosh-tekuri/jsonschema/v6", []string{"arguments"},
		"the validator has sharp corners that arguments blunts once for all"},
	{"golang.org/x/sys", []string{"internal/front", "internal/upstream", "internal/app", "internal/machine", "internal/cli", "cmd/mcpmend"},
		"processes, pipes and a user's variables, as the operating system sees them"},
	{"github.com/tailscale/hujson", []string{"internal/clientconfig"},
		"clients' files are somebody else's grammar; our own messages are read by wire"},
	{"github.com/pelletier/go-toml/v2", []string{"internal/clientconfig"},
		"its offsets come from a package that calls itself unstable, so one room meets it"},
	{"go.yaml.in/yaml/v3", []string{"internal/clientconfig"},
		"it loses formatting when it writes, so only the room that splices bytes may have it"},
	{"github.com/compose-spec/compose-go/v2", []string{"internal/machine"},
		"it may read any file and start any loader; one file switches that off before it is given a project's"},
	{"github.com/sirupsen/logrus", []string{"internal/machine"},
		"comes with compose-go and is only told to be silent; we log with log/slog"},
	{"github.com/spf13/cobra", []string{"internal/cli", "cmd/mcpmend"},
		"a command line is for people; nothing else may depend on one"},
	{"github.com/spf13/pflag", []string{"internal/cli", "cmd/mcpmend"},
		"comes with cobra"},
	{"charm.land/lipgloss/v2", []string{"internal/cli"},
		"colours and widths are for people at a terminal"},
	{"github.com/charmbracelet/x/term", []string{"internal/cli"},
		"comes with lipgloss: is it a terminal, and how wide"},
	{"github.com/aymanbagabas/go-udiff", []string{"internal/doctor"},
		"a change is shown before it is made"},
}

// testGuests may be imported by any test, and by tests alone.
var testGuests = []string{
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"github.com/modelcontextprotocol/go-sdk", // real clients and servers
}

// The face of the library is what users import. Whatever it reaches through our
// own rooms may bring these modules, and what they need themselves, into a
// user's build: no database, no message queue, no command line.
var (
	face       = []string{".", "fault", "arguments"}
	faceGuests = []string{
		"github.com/modelcontextprotocol/go-sdk",
		"github.com/santhosh-tekuri/jsonschema/v6",
		"golang.org/x/sys",
	}
)

func TestTheHouseIsInOrder(t *testing.T) {
	pkgs, err := readPackages(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if pkgs["fault"] == nil {
		t.Fatalf("package fault was not found among %d packages; the walk is broken", len(pkgs))
	}
	for _, complaint := range inspect(pkgs) {
		t.Error(complaint)
	}
}

func TestTheMapOnlyPointsDownwards(t *testing.T) {
	position := make(map[string]int)
	for i, r := range house {
		if _, twice := position[r.dir]; twice {
			t.Errorf("%s is in the map twice", r.dir)
		}
		position[r.dir] = i
	}
	for i, r := range house {
		if r.why == "" {
			t.Errorf("%s has no reason beside its rule", r.dir)
		}
		for _, imp := range r.imports {
			if imp == everything {
				continue
			}
			if at, ok := position[imp]; !ok || at <= i {
				t.Errorf("%s may import %s, which is not further down in the map", r.dir, imp)
			}
		}
	}
}

func TestEveryGuestIsArguedFor(t *testing.T) {
	doc, err := os.ReadFile("docs/DEPENDENCIES.md")
	if err != nil {
		t.Fatal(err)
	}
	modules := slices.Clone(testGuests)
	for _, g := range guests {
		modules = append(modules, g.module)
	}
	for _, m := range modules {
		if !strings.Contains(string(doc), "`"+m+"`") {
			t.Errorf("docs/DEPENDENCIES.md has no row for %s", m)
		}
	}
}

// Each rule is shown a small tree that breaks it, because a rule that has never
// complained may not be looking.
func TestEveryRuleOfTheHouseCanComplain(t *testing.T) {
	for _, test := range []struct {
		name string
		tree map[string]string
		want string // "" when the tree is in order
	}{
		{"down the path", map[string]string{
			"internal/guard/guard.go": `// Package guard is fine.
				package guard; import _ "github.com/mcpmend/mcpmend/internal/upstream"`,
		}, ""},
		{"against the flow", map[string]string{
			"internal/upstream/upstream.go": `// Package upstream is wrong.
				package upstream; import _ "github.com/mcpmend/mcpmend/internal/guard"`,
		}, "internal/upstream imports internal/guard"},
		{"against the flow on one system only", map[string]string{
			"internal/wire/wire.go": `// Package wire is fine.
				package wire`,
			"internal/wire/wire_windows.go": `package wire; import _ "github.com/mcpmend/mcpmend/fault"`,
		}, "internal/wire imports fault"},
		{"the library's face from below", map[string]string{
			"fault/fault.go": `// Package fault is wrong.
				package fault; import _ "github.com/mcpmend/mcpmend"`,
		}, "fault imports ."},
		{"a room beside the path into the path", map[string]string{
			"internal/advisor/advisor.go": `// Package advisor is wrong.
				package advisor; import _ "github.com/mcpmend/mcpmend/internal/guard"`,
		}, "internal/advisor imports internal/guard"},
		{"app imports what it puts together", map[string]string{
			"internal/app/app.go": `// Package app is fine.
				package app; import _ "github.com/mcpmend/mcpmend/internal/front"`,
		}, ""},
		{"app does not import upwards", map[string]string{
			"internal/app/app.go": `// Package app is wrong.
				package app; import _ "github.com/mcpmend/mcpmend/internal/cli"`,
		}, "internal/app imports internal/cli"},
		{"a test may import any room", map[string]string{
			"internal/wire/wire.go": `// Package wire is fine.
				package wire`,
			"internal/wire/wire_test.go": `package wire_test; import _ "github.com/mcpmend/mcpmend/internal/app"`,
		}, ""},
		{"a room without a place", map[string]string{
			"internal/util/util.go": `// Package util is anything.
				package util`,
		}, "internal/util is not in the map"},
		{"no doc comment", map[string]string{
			"internal/wire/wire.go": `package wire`,
		}, "internal/wire has no doc comment"},
		{"a doc comment in a test does not count", map[string]string{
			"internal/wire/wire.go": `package wire`,
			"internal/wire/wire_test.go": `// Package wire is described in the wrong file.
				package wire`,
		}, "internal/wire has no doc comment"},
		{"a licence is no doc comment", map[string]string{
			"fault/fault.go": `// Copyright somebody.
				package fault`,
		}, `fault: the doc comment does not begin with "Package fault "`},
		{"no doc comment in the bench", map[string]string{
			"bench/go.mod":      `module github.com/mcpmend/mcpmend/bench`,
			"bench/hop/main.go": `package main`,
		}, "bench/hop has no doc comment"},
		{"the bench may use anything", map[string]string{
			"bench/go.mod": `module github.com/mcpmend/mcpmend/bench`,
			"bench/hop/main.go": `// Command hop is fine.
				package main; import (_ "example.com/anything"; _ "github.com/mcpmend/mcpmend/internal/front")`,
		}, ""},
		{"the bench from inside the house", map[string]string{
			"internal/app/app.go": `// Package app is wrong.
				package app; import _ "github.com/mcpmend/mcpmend/bench/servers"`,
		}, "internal/app imports bench/servers"},
		{"the bench from a test", map[string]string{
			"fault/fault.go": `// Package fault is fine.
				package fault`,
			"fault/fault_test.go": `package fault; import _ "github.com/mcpmend/mcpmend/bench/servers"`,
		}, "a test of fault imports github.com/mcpmend/mcpmend/bench/servers"},
		{"a command line outside the command line", map[string]string{
			"internal/front/front.go": `// Package front is wrong.
				package front; import _ "github.com/spf13/cobra"`,
		}, "internal/front imports github.com/spf13/cobra"},
		{"the SDK below the edges", map[string]string{
			"internal/wire/wire.go": `// Package wire is wrong.
				package wire; import _ "github.com/modelcontextprotocol/go-sdk/mcp"`,
		}, "internal/wire imports github.com/modelcontextprotocol/go-sdk/mcp"},
		{"a stranger", map[string]string{
			"internal/front/front.go": `// Package front is wrong.
				package front; import _ "example.com/stranger"`,
		}, "internal/front imports example.com/stranger, a module nobody has argued for"},
		{"a stranger in a test", map[string]string{
			"fault/fault.go": `// Package fault is fine.
				package fault`,
			"fault/fault_test.go": `package fault; import _ "example.com/stranger"`,
		}, "a test of fault imports example.com/stranger"},
		{"test tools in a test", map[string]string{
			"fault/fault.go": `// Package fault is fine.
				package fault`,
			"fault/fault_test.go": `package fault; import _ "github.com/google/go-cmp/cmp"`,
		}, ""},
		{"test tools in the product", map[string]string{
			"fault/fault.go": `// Package fault is wrong.
				package fault; import _ "github.com/google/go-cmp/cmp"`,
		}, "fault imports github.com/google/go-cmp/cmp"},
		{"a heavy module two rooms behind the face", map[string]string{
			"mcpmend.go": `// Package mcpmend is fine.
				package mcpmend; import _ "github.com/mcpmend/mcpmend/internal/guard"`,
			"internal/guard/guard.go": `// Package guard is fine.
				package guard; import _ "github.com/mcpmend/mcpmend/internal/upstream"`,
			"internal/upstream/upstream.go": `// Package upstream is wrong.
				package upstream; import _ "modernc.org/sqlite"`,
		}, "the library pulls in modernc.org/sqlite, through internal/upstream"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tree := make(fstest.MapFS)
			for name, src := range test.tree {
				tree[name] = &fstest.MapFile{Data: []byte(src)}
			}
			pkgs, err := readPackages(tree)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(inspect(pkgs), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got complaints:\n%s\nwant: %q", got, test.want)
			}
		})
	}
}

// inspect holds the packages against the map and says what is wrong, in a
// stable order.
func inspect(pkgs map[string]*pkg) []string {
	var complaints []string
	complain := func(format string, args ...any) {
		complaints = append(complaints, fmt.Sprintf(format, args...))
	}
	for _, dir := range sortedKeys(pkgs) {
		p := pkgs[dir]
		if p.name != "" {
			inspectDoc(p, complain)
		}
		if p.bench {
			continue
		}
		place := slices.IndexFunc(house, func(r room) bool { return r.dir == dir })
		if place < 0 {
			complain("%s is not in the map: give it a row in layout_test.go, with a reason, or put the code into a room that is", dir)
			continue
		}
		for _, imp := range sortedKeys(p.imports) {
			inspectImport(place, imp, complain)
		}
		for _, imp := range sortedKeys(p.testImports) {
			switch {
			case within(imp, []string{module + "/bench"}):
				complain("a test of %s imports %s: without go.work it would not build", dir, imp)
			case foreign(imp) && !within(imp, testGuests) && hostedBy(imp) == nil:
				complain("a test of %s imports %s, a module nobody has argued for (docs/DEPENDENCIES.md)", dir, imp)
			}
		}
	}
	inspectFace(pkgs, complain)
	return complaints
}

func inspectDoc(p *pkg, complain func(string, ...any)) {
	switch doc := strings.Join(strings.Fields(p.doc), " "); {
	case doc == "":
		complain("%s has no doc comment", p.dir)
	case p.name != "main" && !strings.HasPrefix(doc, "Package "+p.name+" "):
		complain("%s: the doc comment does not begin with \"Package %s \"", p.dir, p.name)
	}
}

func inspectImport(place int, imp string, complain func(string, ...any)) {
	r := house[place]
	if target, ok := ours(imp); ok {
		may := slices.Contains(r.imports, target)
		if slices.Contains(r.imports, everything) {
			may = slices.ContainsFunc(house[place+1:], func(below room) bool { return below.dir == target })
		}
		if !may {
			complain("%s imports %s: %s", r.dir, target, r.why)
		}
		return
	}
	if !foreign(imp) {
		return
	}
	switch g := hostedBy(imp); {
	case g == nil:
		complain("%s imports %s, a module nobody has argued for (docs/DEPENDENCIES.md)", r.dir, imp)
	case !slices.Contains(g.rooms, r.dir):
		complain("%s imports %s: %s", r.dir, imp, g.why)
	}
}

// inspectFace follows our own imports from the library's face and looks at every
// foreign module met on the way. What those modules import is their business.
func inspectFace(pkgs map[string]*pkg, complain func(string, ...any)) {
	seen := make(map[string]bool)
	var visit func(dir string)
	visit = func(dir string) {
		p := pkgs[dir]
		if p == nil || seen[dir] {
			return
		}
		seen[dir] = true
		for _, imp := range sortedKeys(p.imports) {
			if target, ok := ours(imp); ok {
				visit(target)
			} else if foreign(imp) && !within(imp, faceGuests) {
				complain("the library pulls in %s, through %s", imp, dir)
			}
		}
	}
	for _, dir := range face {
		visit(dir)
	}
}

// A pkg is what the files of one folder say at their top.
type pkg struct {
	dir         string
	name        string // "" when there are only tests
	doc         string
	bench       bool // part of a nested module
	imports     map[string]bool
	testImports map[string]bool
}

// readPackages reads every Go file for every operating system: an import that
// only Windows sees is an import.
func readPackages(fsys fs.FS) (map[string]*pkg, error) {
	pkgs := make(map[string]*pkg)
	nested := make(map[string]bool)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if d.IsDir() {
			if base := path.Base(name); name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || base == "node_modules") {
				return fs.SkipDir
			}
			if name != "." {
				_, err := fs.Stat(fsys, path.Join(name, "go.mod"))
				nested[name] = nested[dir] || err == nil
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		if pkgs[dir] == nil {
			pkgs[dir] = &pkg{dir: dir, bench: nested[dir], imports: make(map[string]bool), testImports: make(map[string]bool)}
		}
		return pkgs[dir].read(fsys, name)
	})
	return pkgs, err
}

func (p *pkg) read(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	imports := p.imports
	if strings.HasSuffix(name, "_test.go") {
		imports = p.testImports
	} else {
		p.name = file.Name.Name
		p.doc += file.Doc.Text()
	}
	for _, spec := range file.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %v", name, err)
		}
		imports[imp] = true
	}
	return nil
}

// ours returns the folder of one of our own packages.
func ours(imp string) (dir string, ok bool) {
	if imp == module {
		return ".", true
	}
	return strings.CutPrefix(imp, module+"/")
}

func foreign(imp string) bool {
	if _, ok := ours(imp); ok {
		return false
	}
	first, _, _ := strings.Cut(imp, "/")
	return strings.Contains(first, ".")
}

func hostedBy(imp string) *guest {
	for i, g := range guests {
		if within(imp, []string{g.module}) {
			return &guests[i]
		}
	}
	return nil
}

func within(imp string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return imp == m || strings.HasPrefix(imp, m+"/")
	})
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
