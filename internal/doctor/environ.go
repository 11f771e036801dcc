package doctor

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// environ is a set of variables as one operating system sees them.
type environ struct {
	os   string
	list []string // NAME=value; the last of a name counts
}

func (e *environ) same(a, b string) bool {
	return a == b || e.os == "windows" && strings.EqualFold(a, b)
}

func (e *environ) lookup(name string) (string, bool) {
	for i := len(e.list) - 1; i >= 0; i-- {
		if n, value, _ := strings.Cut(e.list[i], "="); e.same(n, name) {
			return value, true
		}
	}
	return "", false
}

// set gives a variable a value, in place of any it had.
func (e *environ) set(name, value string) {
	e.drop(func(n string) bool { return e.same(n, name) })
	e.list = append(e.list, name+"="+value)
}

func (e *environ) drop(unwanted func(name string) bool) {
	e.list = slices.DeleteFunc(slices.Clone(e.list), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return unwanted(name)
	})
}

// ofClient is the environment in which a client itself runs. What it refers to in
// a file is looked up here.
func (d *Doctor) ofClient(c *clientconfig.Client) *environ {
	e := d.terminal()
	if d.fromDesktop(c) {
		e.list = d.desktop()
		e.drop(ourOwn)
	}
	return e
}

// terminal is the environment of a client that was started where we were.
func (d *Doctor) terminal() *environ {
	e := &environ{os: d.goos(), list: d.Environ}
	e.drop(ourOwn)
	return e
}

func ourOwn(name string) bool { return strings.HasPrefix(strings.ToUpper(name), "MCPMEND_") }

// fromDesktop reports whether a client has no more than the desktop gives it. One
// that asks the login shell has what a terminal has.
func (d *Doctor) fromDesktop(c *clientconfig.Client) bool {
	return c != nil && c.GUI && !d.asksShell(c)
}

func (d *Doctor) asksShell(c *clientconfig.Client) bool {
	return c != nil && c.AsksShell && d.goos() != "windows"
}

func (d *Doctor) desktop() []string {
	if d.Desktop != nil {
		return d.Desktop.Environ()
	}
	return (&machine.Desktop{Own: d.Environ, Home: d.System.Home, OS: d.goos()}).Guess()
}

// environment is what a client gives to the servers it starts, before the entry
// has its say.
func (d *Doctor) environment(c *clientconfig.Client) *environ {
	e := d.ofClient(c)
	if c != nil {
		e.list = slices.DeleteFunc(e.list, func(entry string) bool {
			name, value, _ := strings.Cut(entry, "=")
			return withholds(c, e, name, value)
		})
	}
	return e
}

// withholds reports whether a client keeps a variable of its own from its servers,
// by the client's idea of what they need or of what is secret, and not by ours.
func withholds(c *clientconfig.Client, e *environ, name, value string) bool {
	switch c.Inherits {
	case "no-secrets":
		return looksWithheld(name, value)
	case "few", "sdk":
		return !slices.ContainsFunc(handedOn[c.Inherits], func(n string) bool { return e.same(n, name) })
	}
	return false
}

// Gemini CLI keeps back what is called like a secret, some names, and what looks
// like one. (Its environmentSanitization.ts; measured with 0.61.)
var (
	withheldWords = pattern(`(?i)TOKEN|SECRET|PASSWORD|PASSWD|KEY|AUTH|CREDENTIAL|CREDS|PRIVATE|CERT`)
	withheldNames = []string{
		"CLIENT_ID", "DB_URI", "CONNECTION_STRING", "AWS_DEFAULT_REGION", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "SLACK_WEBHOOK_URL",
		"TWILIO_ACCOUNT_SID", "DATABASE_URL", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_ACCOUNT", "FIREBASE_PROJECT_ID",
	}
	withheldValues = pattern(`(?i)-----BEGIN (RSA|OPENSSH|EC|PGP) PRIVATE KEY-----|-----BEGIN CERTIFICATE-----` +
		`|(https?|ftp|smtp)://[^:\s]+:[^@\s]+@|(ghp|gho|ghu|ghs|ghr|github_pat)_[a-z0-9_]{36,}|AIzaSy[a-z0-9_\\-]{33}` +
		`|AKIA[A-Z0-9]{16}|eyJ[a-z0-9_-]*\.[a-z0-9_-]*\.[a-z0-9_-]*|(s|r)k_(live|test)_[0-9a-z]{24}|xox[abpr]-[a-z0-9-]+`)
)

func looksWithheld(name, value string) bool {
	upper := strings.ToUpper(name)
	switch {
	case strings.HasPrefix(upper, "GEMINI_CLI_"):
		return false
	case withheldValues().MatchString(value):
		return true
	}
	return slices.Contains(withheldNames, upper) || !strings.HasPrefix(upper, "GIT_CONFIG_") && withheldWords().MatchString(name)
}

// handedOn are the variables that clients with a short list give to their servers:
// Codex has one of its own (measured with 0.166), and many take that of the official
// SDK as it is. On Windows the system adds some to each.
var handedOn = map[string][]string{
	"few": {
		"HOME", "LANG", "LC_ALL", "LOGNAME", "NODE_EXTRA_CA_CERTS", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "__CF_USER_TEXT_ENCODING",
		"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
		"PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
	},
	"sdk": {
		"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "__CF_USER_TEXT_ENCODING",
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "LOGONSERVER", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES",
		"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERDOMAIN", "USERNAME", "USERPROFILE", "WINDIR",
	},
}

// whyWithout says why a server of a client does not get a variable that is set where
// we run: the rest of a sentence that begins with the variable. "" if it is not set
// here, or the server gets it.
func (d *Doctor) whyWithout(c *clientconfig.Client, name string) string {
	here := d.terminal()
	value, _ := here.lookup(name)
	if c == nil || value == "" {
		return ""
	}
	_, has := d.ofClient(c).lookup(name)
	switch kept := withholds(c, here, name, value); {
	case kept && c.Inherits == "no-secrets":
		return fmt.Sprintf("is set in this terminal, but %s keeps what looks like a secret from its servers", c.Name)
	case kept:
		return fmt.Sprintf("is set in this terminal, but %s hands only HOME, PATH and a few others on to its servers", c.Name)
	case !has:
		return d.whyUnset(c, name)
	}
	return ""
}

// whyUnset is the same for a variable that the client itself does not have.
func (d *Doctor) whyUnset(c *clientconfig.Client, name string) string {
	if value, _ := d.terminal().lookup(name); value == "" || !d.fromDesktop(c) {
		return ""
	}
	return fmt.Sprintf("is set in this terminal, but %s is started by the desktop and does not get it", c.Name)
}

func (d *Doctor) goos() string {
	if d.System.OS != "" {
		return d.System.OS
	}
	return runtime.GOOS
}

func (d *Doctor) home() string {
	if d.System.Home != "" {
		return d.System.Home
	}
	home, _ := os.UserHomeDir()
	return home
}

// start is what the client would make of an entry, and what is wrong with the
// variables in it.
func (d *Doctor) start(s *clientconfig.Server, f *clientconfig.File) (Start, []Finding) {
	x, as := d.expansion(s, f)
	st := Start{Transport: s.Transport, Dir: d.folder(as, s, x)}
	if s.URL.Text != "" {
		st.URL = x.expand("url", "", s.URL)
		st.Header = x.headers()
	} else if s.Command.Text != "" {
		st.Command = []string{x.expand("command", "", s.Command)}
		for _, a := range s.Args {
			st.Command = append(st.Command, x.expand("args", "", a))
		}
		st.Env = x.variables(d.environment(as)).list
		if s.Cwd.Text == "" && !ofProject(s, f) && s.Scope != "local" && takesFromFolder(st.Command) {
			st.Dir = d.home()
		}
	}
	st.refers = x.refers
	return st, x.found
}

// expansion of an entry, and the client in whose environment it is started.
func (d *Doctor) expansion(s *clientconfig.Server, f *clientconfig.File) (*expansion, *clientconfig.Client) {
	client := s.Client
	if client == nil {
		client = f.Client
	}
	as := client
	if d.As != nil {
		as = d.As
	}
	return &expansion{doctor: d, client: client, as: as, server: s, env: d.ofClient(as)}, as
}

// takesFromFolder reports whether a program takes what it runs, or whom it gets
// that from, out of the folder that it is started in: npx obeys the .npmrc there
// and python -m prefers a module that lies there. Its client has asked the user
// whether the folder can be trusted, and we have not; so a server of the user's own
// is started elsewhere, unless the entry itself names something in the folder.
func takesFromFolder(command []string) bool {
	args := command[1:]
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "./") || strings.HasPrefix(a, "../") }) {
		return false
	}
	name := programName(command[0])
	switch strings.TrimRight(name, "0123456789.") {
	case "cmd", "env": // start another program
		behind := slices.IndexFunc(args, func(a string) bool {
			return !strings.EqualFold(a, "/c") && !strings.HasPrefix(a, "-") && !strings.Contains(a, "=")
		})
		return behind >= 0 && takesFromFolder(args[behind:])
	case "mcpmend":
		behind := slices.Index(args, "--") + 1
		return behind > 0 && behind < len(args) && takesFromFolder(args[behind:])
	case "sh", "bash", "zsh", "dash", "fish", "ksh": // may start anything
		return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") && strings.HasSuffix(a, "c") })
	case "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "uv", "uvx", "pipx":
		return true
	case "python", "py":
		return slices.Contains(args, "-m") || slices.Contains(args, "-c")
	}
	return false
}

// folder is where the client starts the server: where the entry says, or where
// the client itself works. A terminal's client works in the project, an app from
// the desktop only as far as the project's own file goes.
func (d *Doctor) folder(c *clientconfig.Client, s *clientconfig.Server, x *expansion) string {
	base := d.home()
	if d.System.Project != "" && (!c.GUI || s.Scope == "project" || s.Scope == "local") {
		base = d.System.Project
	}
	if s.Cwd.Text == "" {
		return base
	}
	at := site{environ: *x.env, dir: base}
	return at.absolute(x.expand("cwd", "", s.Cwd))
}

// expansion replaces the variables of one entry as its client does, and notes
// what is wrong with them.
type expansion struct {
	doctor *Doctor
	client *clientconfig.Client
	as     *clientconfig.Client // in whose environment it is started
	server *clientconfig.Server
	env    *environ // of as
	found  []Finding
	refers []string // what was looked up, as NAME=value
}

// expand is a value as the client hands it on. part says where it stands in the
// entry, and variable is its name if it is one of the entry's own.
func (x *expansion) expand(part, variable string, v clientconfig.Value) string {
	var out strings.Builder
	rest := 0
	for _, r := range x.client.References(part, v.Text) {
		out.WriteString(v.Text[rest:r.Start])
		rest = r.Start + len(r.Text)
		out.WriteString(x.resolve(part, variable, v, r))
	}
	out.WriteString(v.Text[rest:])
	x.look(part, variable, v)
	return out.String()
}

func (x *expansion) resolve(part, variable string, v clientconfig.Value, r clientconfig.Reference) string {
	if !r.Expanded {
		x.foreign(part, variable, v, r)
		return r.Text
	}
	switch r.Source {
	case clientconfig.Asked, clientconfig.Secret:
		x.asked(v, r)
		return r.Text
	case clientconfig.Builtin:
		switch r.Name {
		case "workspaceFolder":
			return x.doctor.System.Project
		case "userHome":
			return x.doctor.home()
		}
		x.asked(v, r)
		return r.Text
	}
	if value, ok := x.env.lookup(r.Name); ok {
		x.refers = append(x.refers, r.Name+"="+value)
		return value
	}
	if r.HasDefault {
		x.refers = append(x.refers, r.Name+"="+r.Default)
		return r.Default
	}
	x.unset(part, variable, v, r)
	if x.client.Variables.Unset == "kept" {
		return r.Text
	}
	return ""
}

// unset notes a reference to a variable that the client does not have.
func (x *expansion) unset(part, variable string, v clientconfig.Value, r clientconfig.Reference) {
	if part == "args" && x.own(r.Name) {
		return // the entry sets it, so the server may look it up by itself
	}
	becomes := "nothing stands in its place"
	if x.client.Variables.Unset == "kept" {
		becomes = "the server is given the text " + r.Text
	}
	f := x.finding(kindUnset, part, variable, v, r)
	why := x.doctor.whyUnset(x.as, r.Name)
	if why == "" {
		why = "is not set in the environment of " + x.as.Name
	}
	f.Explanation = fmt.Sprintf("%s %s, so %s.", r.Name, why, becomes)
	x.found = append(x.found, f)
}

// foreign notes a spelling that this client hands on as it is.
func (x *expansion) foreign(part, variable string, v clientconfig.Value, r clientconfig.Reference) {
	if r.Source == clientconfig.Builtin && r.Form == "{{NAME}}" {
		return // a template of the server's own
	}
	if part == "args" && (x.own(r.Name) || isShell(x.server.Command.Text)) {
		return // the server or the shell replaces it
	}
	f := x.finding(kindForeignReference, part, variable, v, r)
	if part == "args" && (r.Form == "$NAME" || r.Form == "%NAME%") {
		f.Severity = Warning // it may be meant as it stands
	}
	if r.Source == clientconfig.Environment {
		f.problem.Want = x.client.Refer(part, r)
	}
	f.Explanation = fmt.Sprintf("%s does not replace %s here; the server is given these very characters.", x.client.Name, r.Text)
	if f.problem.Want != "" {
		f.Explanation = fmt.Sprintf("%s does not know the spelling %s; it writes %s.", x.client.Name, r.Text, f.problem.Want)
	}
	x.found = append(x.found, f)
}

// asked notes what only the running client knows.
func (x *expansion) asked(v clientconfig.Value, r clientconfig.Reference) {
	f := x.finding(kindAsked, "", "", v, r)
	f.Severity = Warning
	f.Explanation = fmt.Sprintf("%s asks a person for %s or keeps it in a store of its own, so the server cannot be started from here.", x.client.Name, r.Name)
	x.found = append(x.found, f)
}

// finding is what all findings about a reference have in common. What stands in
// the environment of a server or in a header may be more than it needs; it is a
// cause only if the server then fails. Nothing works with a command, an argument
// or an address that is not there.
func (x *expansion) finding(kind, part, variable string, v clientconfig.Value, r clientconfig.Reference) Finding {
	f := finding(AtVariables, kind, Broken, place(v.At))
	if part == "env" || part == "headers" {
		f.Severity = Warning
	}
	f.pieces.Variable = r.Name
	f.entryVariable = variable
	f.problem = &clientconfig.Problem{Kind: clientconfig.Kind(kind), At: v.At, Path: v.Path, Server: x.server.Name.Text, Have: r.Text}
	if r.HasDefault {
		f.problem.Have = "${" + r.Name + ":-…}" // the default may be a secret
	}
	f.Evidence = []string{where(part, variable) + " refers to " + r.Name}
	return f
}

// where names a part of an entry in words.
func where(part, variable string) string {
	switch part {
	case "args":
		return "an argument"
	case "env":
		return "the variable " + variable
	case "headers":
		return "the header " + variable
	case "":
		return "the entry"
	}
	return "the " + part
}

// own reports whether the entry sets a variable itself.
func (x *expansion) own(name string) bool {
	return slices.ContainsFunc(x.server.Env, func(p clientconfig.Pair) bool { return x.env.same(p.Name.Text, name) }) ||
		slices.ContainsFunc(x.server.EnvFrom, func(v clientconfig.Value) bool { return x.env.same(v.Text, name) })
}

func isShell(command string) bool {
	switch programName(command) {
	case "sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh":
		return true
	}
	return false
}

// programName is the name of a program without folder and ending, for either kind
// of path.
func programName(command string) string {
	name := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// headers are what the client sends along.
func (x *expansion) headers() []string {
	var out []string
	for _, h := range x.server.Headers {
		out = append(out, h.Name.Text+": "+x.expand("headers", h.Name.Text, h.Value))
	}
	for _, h := range x.server.HeadersFrom {
		value, ok := x.env.lookup(h.Value.Text)
		if !ok {
			x.unset("headers", h.Name.Text, h.Value, named(h.Value))
			continue
		}
		if h.Name.Text == "Authorization" && x.client.Entry.BearerFrom != "" && !strings.Contains(value, " ") {
			value = "Bearer " + value
		}
		out = append(out, h.Name.Text+": "+value)
	}
	return out
}

// named is a variable that stands in an entry by its name alone.
func named(v clientconfig.Value) clientconfig.Reference {
	return clientconfig.Reference{Text: v.Text, Name: v.Text, Expanded: true}
}

// variables is an environment with those of the entry.
func (x *expansion) variables(e *environ) *environ {
	for _, v := range x.server.EnvFrom {
		if value, ok := x.env.lookup(v.Text); ok {
			e.set(v.Text, value)
		} else {
			x.unset("env", v.Text, v, named(v))
		}
	}
	for _, pair := range x.envFile() {
		e.set(pair[0], pair[1])
	}
	for _, p := range x.server.Env {
		value := x.expand("env", p.Name.Text, p.Value)
		if own, there := e.lookup("PATH"); there && x.as.AppendsPath && strings.EqualFold(p.Name.Text, "PATH") {
			value = own + machine.OS(e.os).ListSeparator() + value
		}
		e.set(p.Name.Text, value)
	}
	return e
}

// envFile are the variables of the file that the entry names for them.
func (x *expansion) envFile() [][2]string {
	if x.server.EnvFile.Text == "" {
		return nil
	}
	at := site{environ: *x.env, dir: x.doctor.System.Project}
	return readEnvFile(at.absolute(x.expand("envFile", "", x.server.EnvFile)))
}

// readEnvFile reads the lines NAME=value of a file; a file that cannot be read has
// none.
func readEnvFile(path string) [][2]string {
	text, err := machine.ReadPlain(path, 1<<20)
	if err != nil {
		return nil
	}
	var out [][2]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		out = append(out, [2]string{name, value})
	}
	return out
}

// look notes what is wrong with a value whatever the client makes of it: it is the
// text of a manual, or a secret where everybody can read it.
func (x *expansion) look(part, variable string, v clientconfig.Value) {
	if len(x.client.References(part, v.Text)) > 0 {
		return
	}
	if isPlaceholder(part, v.Text) {
		f := finding(AtVariables, kindPlaceholder, Warning, place(v.At))
		f.pieces.Variable, f.entryVariable = variable, variable
		f.problem = &clientconfig.Problem{Kind: kindPlaceholder, At: v.At, Path: v.Path, Server: x.server.Name.Text}
		f.Evidence = []string{where(part, variable) + " holds the text of an example"}
		f.Explanation = fmt.Sprintf("%s still holds the text of an example where a real value belongs.", upperFirst(where(part, variable)))
		x.found = append(x.found, f)
		return
	}
	if x.server.Scope == "project" && isPlainSecret(part, variable, v.Text) {
		f := finding(AtVariables, kindPlainSecret, Warning, place(v.At))
		f.pieces.Variable, f.entryVariable = variable, variable
		f.problem = &clientconfig.Problem{Kind: kindPlainSecret, At: v.At, Path: v.Path, Server: x.server.Name.Text}
		f.Evidence = []string{where(part, variable) + " holds a secret in clear"}
		f.Explanation = "The secret stands in a file of the project, where everybody who has the project can read it."
		x.found = append(x.found, f)
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

var (
	// What people write where a value belongs: <token>, YOUR_API_KEY, xxxx, changeme.
	placeholderWords = pattern(`(?i)^(<[^<>]+>|\[(your|insert|api|token)[^\]]*\]|\{(your|insert)[^}]*\}` +
		`|(insert|enter|paste|put|add|replace)[-_ ](your|with|this|me|the|here).*` +
		`|your[-_ ]?[a-z0-9_ -]*(key|token|secret|password|id|name|url|host|value|here)s?([-_ ]here)?` +
		`|my[-_ ]?(api|access|secret|super)?[-_ ]?(key|token|secret|password)` +
		`|[a-z0-9_-]*[-_ ]here|change[-_ ]?me|replace[-_ ]?me|todo|placeholder|redacted|x{3,}|\*{3,}|\.{3,}|…` +
		`|(sk|pk|ghp|gho|github_pat|xox[bp]|glpat)[-_](x{3,}|\.{3,}|\*{3,}|…|your.*)` +
		`|(sk|ghp|xoxb|glpat)[-_]?\.\.\.)$`)
	placeholderPath = pattern(`(?i)^(/path/to/|[a-z]:\\path\\to\\|/absolute/path/|path/to/|<[^<>]*path[^<>]*>)`)
)

// isPlaceholder reports whether a value was copied from a manual and never filled
// in.
func isPlaceholder(part, value string) bool {
	value = strings.TrimSpace(value)
	switch part {
	case "env":
	case "headers":
		if _, credentials, ok := strings.Cut(value, " "); ok {
			value = credentials
		}
	case "args", "command", "cwd":
		if placeholderPath().MatchString(value) {
			return true
		}
		if part == "args" {
			if _, after, ok := strings.Cut(value, "="); ok {
				value = after
			}
			return strings.HasPrefix(value, "<") && placeholderWords().MatchString(value) || bareExample().MatchString(value)
		}
		return false
	case "url":
		return strings.Contains(value, "<") && strings.Contains(value, ">") || strings.Contains(strings.ToUpper(value), "YOUR_")
	}
	return placeholderWords().MatchString(value) || placeholderPath().MatchString(value)
}

// bareExample is a placeholder in capitals, which no argument is by accident.
var bareExample = pattern(`^YOUR[-_][A-Z0-9_-]+$|^[A-Z0-9_-]+_HERE$`)

// isPlainSecret reports whether a value is a secret that stands for itself.
func isPlainSecret(part, name, value string) bool {
	if secret.Scrub(value) != value {
		return true
	}
	return (part == "env" || part == "headers") && secret.Name(name) && len(value) >= 8 && !strings.HasPrefix(value, "/")
}
