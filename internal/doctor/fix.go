package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/registry"
)

// A fixKind is what can be said of all fixes of one name.
type fixKind struct {
	name string
	// class is the mildest that a fix of this name has. A single one may be
	// stricter, for example where quotes can be read in two ways.
	class Class
	// doc says what it does, in a line.
	doc string
}

// fixKinds are all fixes that there are, in the order of the ladder. docs/FIXES.md is
// made of it.
var fixKinds = []fixKind{
	{"move_entry", Ask, "moves servers from a file that the client does not read to the one that it reads"},
	{"strict_json", Auto, "removes trailing commas, and comments unless the client skips them, from a file that has to be strict JSON"},
	{"remove_mark", Auto, "removes a byte order mark from the beginning of a file, for a client that cannot read it"},
	{"write_braces", Auto, "writes {} into an empty file"},
	{"rename_key", Auto, "gives the servers the key under which this client looks for them"},
	{"move_servers", Ask, "moves servers from a key where this client does not look to the one that it reads, beside those that are there"},
	{"wrap_key", Auto, "puts servers that stand at the top of the file under the client's key"},
	{"unnest", Auto, "takes one of two equal keys around the servers away"},
	{"list_to_object", Ask, "turns a list of servers with names into an object"},
	{"object_to_list", Ask, "turns an object of servers into a list, each with its name"},
	{"convert_entry", Auto, "writes an entry that was made for another client in the names and shapes that this client reads"},
	{"rename_field", Auto, "gives a part of the entry the name that this client knows"},
	{"add_type", Auto, "adds the type without which this client skips the entry"},
	{"set_type", Auto, "writes the type in the client's own spelling"},
	{"split_args", Auto, "turns arguments that are one text into a list"},
	{"split_command", Auto, "takes the arguments out of the command"},
	{"respell_reference", Auto, "writes a reference to a variable in the spelling of this client"},
	{"reference_same_name", Ask, "hands a variable of your environment on to the server, by reference"},
	{"reference_other_name", Ask, "refers to a variable of your environment that has a similar name"},
	{"rename_variable", Ask, "gives a variable of the entry the name that the server asks for"},
	{"absolute_path", Auto, "names the program by its absolute path and puts its folder first in the server's PATH"},
	{"path_order", Auto, "puts the folder of a newer runtime first in the server's PATH"},
	{"script_path", Ask, "corrects the path of a script where exactly one file has a similar name"},
	{"cmd_c", Auto, "starts a script of Windows through cmd /c, for clients that cannot start it themselves"},
	{"quoting", Auto, "removes quotes that became part of a path"},
	{"npx_yes", Auto, "adds -y, so that npx does not wait for an answer"},
	{"lower_case_package", Ask, "writes the name of an npm package in lower case, as all of them are"},
	{"clear_npx_folder", Auto, "removes the one folder of npm's cache that a broken installation left behind"},
	{"pin_mcp", Auto, `adds --with "mcp<2" for a server that needs the first version of the Python SDK`},
	{"python_version", Auto, "adds --python with the version that the server's package asks for"},
	{"python_utf8", Auto, "sets PYTHONUTF8=1, so that Python does not fail over a character"},
	{"cache_dir", Ask, "gives a package runner a cache folder that you may write to"},
	{"docker_no_detach", Auto, "removes -d: a container in the background cannot be spoken to"},
	{"docker_interactive", Auto, "adds -i, without which docker closes standard input"},
	{"docker_pass_env", Ask, "adds -e NAME, so that docker passes the variable on into the container"},
	{"compose_port", Ask, "uses the port that docker compose publishes instead of the one inside the container"},
	{"localhost_ipv4", Auto, "writes 127.0.0.1 for localhost where only that answers"},
	{"set_transport", Auto, "names the transport that the server speaks"},
	{"startup_timeout", Auto, "gives the server more time to start, in the client's own field for it"},
	{"wait_longer", Auto, "looks again with more time; changes nothing"},
	{"isolated", Ask, "adds the flag that the server's own message recommends for running beside another copy"},
	{"wrap", Ask, "puts the server behind mcpmend run"},

	{"set_variable", Never, "a variable has to be set by you; we do not copy values"},
	{"install_program", Never, "a program has to be installed by you; we do not run another one in its place"},
	{"make_executable", Never, "a file has to be made executable by you; we do not change permissions"},
	{"start_server", Never, "a program that should be running has to be started by you"},
	{"sign_in", Never, "somebody has to sign in; we do not try credentials"},
	{"report_it", Never, "only the makers of the server can mend it"},
	{"by_hand", Never, "only you can decide this; the exact step is said"},
}

// sources are what fixes know beyond the case: each is asked when a fix needs it.
// Any of them may be missing, and then the fix is not offered.
type sources struct {
	os     machine.OS
	home   string
	system clientconfig.System
	// project is the folder the client was opened in, "" for none.
	project string
	// self is a path of mcpmend that will still be there tomorrow.
	self string
	// withheld are variables that it keeps from a server, as in Doctor.
	withheld func(name string) bool
	// path is the PATH that the client gives its servers.
	path string
	// programs finds a program where the client does not look: login shell, version
	// managers. The best comes first.
	programs func(ctx context.Context, name string) []machine.Found
	// names are the variables in the user's environment that the client can see,
	// dotenv those that stand in .env files.
	names  []string
	dotenv func() []machine.DotenvName
	// lost says whether a variable is set where we run and does not reach the server.
	lost func(name string) bool
	// desktop: the client has only what the desktop gives it.
	desktop bool
	// waits is how long the client waits for the server to start; 0 is what it does by
	// itself.
	waits time.Duration
	// ports are what docker compose publishes.
	ports func(context.Context) machine.Ports
	// answers says whether somebody listens.
	answers func(ctx context.Context, host string, port int) bool
	// variables are those that the registry knows for this server, page is where it
	// sends people for help.
	variables []registry.Variable
	page      string
	// speaks finds out by trying what a URL speaks.
	speaks func(context.Context) clientconfig.Transport
	// exists says whether there is such a file, siblings lists the files beside one.
	exists   func(string) bool
	siblings func(string) []string
	// usedBy says whether a running process works in a folder, and whether that can
	// be known here.
	usedBy func(folder string) (used, known bool)
}

// A treatment is one finding of one case and all that its fixes are made from.
type treatment struct {
	sources
	c      *Case
	f      *Finding
	file   *clientconfig.File
	server *clientconfig.Server // nil for a file as a whole
	client *clientconfig.Client
}

// fixes returns what could be done about a finding, the best first. It is the same
// for the same case, finding and sources, and changes nothing but f.Help, which it
// fills in where the registry knows a page.
func (s sources) fixes(ctx context.Context, c *Case, f *Finding) []Fix {
	t := &treatment{sources: s, c: c, f: f, file: c.file, server: c.server, client: clientconfig.ByID(c.Client)}
	if t.client == nil {
		t.client = &clientconfig.Client{ID: c.Client, Name: "the client"}
	}
	if t.waits == 0 {
		t.waits = time.Duration(t.client.Waits) * time.Second
	}
	treat := treatments[f.ID]
	if f.refused && f.problem != nil && f.problem.Server != "" {
		treat = refusedFile
	}
	if treat == nil {
		treat = treatments[f.Kind]
	}
	var all []Fix
	if treat != nil {
		all = treat(ctx, t)
	} else {
		all = []Fix{t.explained()}
	}
	if f.lost {
		all = slices.Concat(missingVariable(ctx, t), all)
	}
	if t.file == nil { // what stands in no file can only be mended by whoever typed it
		all = slices.DeleteFunc(all, func(fix Fix) bool { return fix.Class != Never })
	}
	return all
}

// treatments by ID of a finding, or by its kind if it is treated alike everywhere.
var treatments = map[string]func(context.Context, *treatment) []Fix{
	"file.unreadable": unreadable,
	"file.misplaced":  misplaced,

	"parse.unparsable":      unparsable,
	"parse.comment":         strictJSON,
	"parse.trailing_comma":  strictJSON,
	"parse.byte_order_mark": byteOrderMark,
	"parse.empty":           emptyFile,
	"parse.duplicate_key":   duplicateKey,
	"parse.wrong_root":      wrongRoot,
	"shape.wrong_root":      wrongRoot,

	"shape.wrong_key":          wrongKey,
	"shape.no_key":             noKey,
	"shape.doubly_nested":      doublyNested,
	"shape.wrong_container":    wrongContainer,
	"shape.wrong_name":         wrongName,
	"shape.missing_type":       missingType,
	"shape.wrong_type":         wrongType,
	"shape.args_as_string":     argsAsString,
	"shape.command_holds_args": commandHoldsArgs,
	"shape.no_command":         noCommand,
	"shape.no_name":            noName,
	"shape.command_and_url":    commandAndURL,
	"shape.no_urls":            noURLs,
	"shape.wrong_shape":        wrongShape,
	"shape.missing_part":       wrongShape,
	"shape.part_not_allowed":   wrongShape,
	"shape.shadowed":           shadowed,

	"variables.unset":             unsetVariable,
	"variables.foreign_reference": foreignReference,
	"variables.placeholder":       placeholder,
	"variables.asked":             nothingToDo,
	"variables.plain_secret":      plainSecret,
	"variables.unverified_tls":    safer,
	"variables.preload":           safer,

	"resolve.permission_denied":      notExecutable,
	"resolve.script_missing":         scriptMissing,
	"resolve.cwd_missing":            folderMissing,
	"resolve.depends_on_folder":      dependsOnFolder,
	"resolve.windows_shim":           windowsShim,
	"resolve.npx_without_yes":        npxWithoutYes,
	"resolve.docker_detached":        dockerDetached,
	"resolve.docker_not_interactive": dockerNotInteractive,
	"resolve.deprecated":             deprecated,

	"runtime_version":       runtimeVersion,
	"missing_env_var":       missingVariable,
	"command_not_found":     innerCommandNotFound, // the command itself, its interpreter, or what it starts
	"connection_refused":    connectionRefused,
	"timeout":               timedOut,
	"server_hung":           timedOut,
	"handshake.slow":        slowStart,
	"auth_failed":           authFailed,
	"transport_mismatch":    transportMismatch,
	"permission_denied":     permissionDenied,
	"package_not_found":     packageNotFound,
	"package_cache_corrupt": cacheCorrupt,
	"dependency_break":      dependencyBreak,
	"missing_dependency":    missingDependency,
	"encoding":              encoding,
	"command_quoting":       commandQuoting,
	"port_in_use":           inUse,
	"resource_locked":       inUse,
	"spawn_conflict":        inUse,
	"docker_unavailable":    dockerUnavailable,
	"tls":                   untrusted,
	"server_crashed":        reported,
	"unknown":               reported,

	"stdout_pollution":          polluted,
	"tools.none":                noTools,
	"schemas.schema_rejected":   schemaRejected,
	"schemas.tool_name_invalid": schemaRejected,
	"schemas.too_many_tools":    tooManyTools,
}

func nothingToDo(context.Context, *treatment) []Fix { return nil }

// never is a fix for a person; run may be "".
func never(name, run, format string, args ...any) Fix {
	return Fix{Name: name, Class: Never, Does: fmt.Sprintf(format, args...), Run: run}
}

// reportIt sends a person to the makers of the server.
func (t *treatment) reportIt(format string, args ...any) Fix {
	fix := never("report_it", "", format, args...)
	if t.c.Name != "" {
		fix.Run = t.typed("mcpmend report", t.c.Name)
	}
	return fix
}

// fix is one that is made of edits. An edit that cannot be made on the file as it
// is now makes no fix.
func (t *treatment) fix(name string, class Class, does string, edits ...Edit) []Fix {
	if t.file == nil {
		return nil
	}
	f := t.file
	for _, e := range edits {
		if e.open != nil { // another file; it is tried when it is opened
			continue
		}
		g, err := e.apply(f)
		if err != nil {
			return nil
		}
		f = g
	}
	return []Fix{{Name: name, Class: class, Does: does, Edits: edits}}
}

// or adds what a person can do, if there is nothing better or beside it.
func or(fixes []Fix, others ...Fix) []Fix { return append(fixes, others...) }

// explained is what package fault says would help.
func (t *treatment) explained() Fix {
	does := t.f.hint
	if does == "" {
		does = fault.Kind(t.f.Kind).Diagnosis(fault.Evidence{}).SuggestedFix
	}
	return never("by_hand", "", "%s", does)
}

func (t *treatment) evidence() fault.Evidence {
	if t.c.saw == nil || t.c.saw.Fault == nil {
		return fault.Evidence{}
	}
	return t.c.saw.Fault.Evidence
}

// where is the finding's place as people write it.
func (t *treatment) where() string {
	at := t.f.At
	if at.File == "" {
		at = t.c.At
	}
	if at.File == "" {
		return "the command line"
	}
	return at.String()
}

// problem is what package clientconfig said, if the finding comes from there.
func (t *treatment) problem() (clientconfig.Problem, bool) {
	if t.file == nil || t.f.problem == nil {
		return clientconfig.Problem{}, false
	}
	return *t.f.problem, true
}

func (s *sources) fileExists(path string) bool { return s.exists != nil && s.exists(path) }

func (s *sources) find(ctx context.Context, name string) []machine.Found {
	if s.programs == nil || name == "" {
		return nil
	}
	return s.programs(ctx, name)
}
