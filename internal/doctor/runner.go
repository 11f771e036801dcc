package doctor

import (
	"slices"
	"strings"
)

// A launch is a command line taken apart: who fetches a package and runs it, and
// which one.
type launch struct {
	words []string
	// runner is who does it, such as "npx", "uvx" or "docker run"; "" if the command
	// starts a program by itself.
	runner string
	// options is where the runner's own arguments begin, and rest where they end: at
	// the package, or at a command that the package brings.
	options, rest int
	// registry is whose package it is: "npm", "pypi" or "oci"; "" if there is none.
	registry string
	// id names the package, perhaps with a version. It is the end of words[at].
	id string
	at int
}

// A runner is a command that fetches what it runs.
type runner struct {
	line     string // the program and its verbs
	name     string // as in launch
	registry string
	// names are options whose value is the package; the first word is then a command
	// of it. values are other options that are followed by a value.
	names, values string
}

var runners = []runner{
	{"npx", "npx", "npm", "-p --package", "-c --call"},
	{"npm exec", "npm exec", "npm", "-p --package", "-c --call"},
	{"npm x", "npm exec", "npm", "-p --package", "-c --call"},
	{"pnpx", "pnpx", "npm", "-p --package", "-c --call"},
	{"pnpm dlx", "pnpx", "npm", "-p --package", "-c --call"},
	{"pnpm exec", "pnpm exec", "npm", "-p --package", ""},
	{"yarn dlx", "yarn dlx", "npm", "-p --package", ""},
	{"yarn exec", "yarn exec", "npm", "-p --package", ""},
	{"bunx", "bunx", "npm", "-p --package", ""},
	{"bun x", "bunx", "npm", "-p --package", ""},
	{"uvx", "uvx", "pypi", "--from", uvValues},
	{"uv tool run", "uvx", "pypi", "--from", uvValues},
	{"uv run", "uv run", "", "", uvValues}, // what a project brings
	{"pipx run", "pipx run", "pypi", "--spec", "--python"},
}

const uvValues = "--with --with-editable --with-requirements --python -p --index --default-index --index-url -i --extra-index-url" +
	" --directory --project --env-file --extra --group --package"

// launchOf takes a command line apart, also behind "cmd /c".
func launchOf(words []string) launch {
	l := launch{words: words, at: -1}
	if d, ok := dockerRun(words); ok {
		l.runner, l.registry, l.options, l.rest = "docker run", "oci", d.first, d.image
		if d.image < len(words) {
			l.at, l.id = d.image, words[d.image]
		}
		return l
	}
	begin, program := started(words)
	for _, r := range runners {
		line := strings.Fields(r.line)
		end := begin + len(line)
		if program != line[0] || end > len(words) || !slices.Equal(words[begin+1:end], line[1:]) {
			continue
		}
		l.runner, l.registry, l.options = r.name, r.registry, end
		l.read(strings.Fields(r.names), strings.Fields(r.values))
		break
	}
	return l
}

// fetches reports whether a program is one of the runners, with whatever verb.
func fetches(program string) bool {
	return slices.ContainsFunc(runners, func(r runner) bool {
		name, _, _ := strings.Cut(r.line, " ")
		return name == program
	})
}

// started is the program that a command line comes down to, and where it stands:
// "cmd /c" only starts another.
func started(words []string) (at int, program string) {
	if len(words) > 2 && programName(words[0]) == "cmd" && strings.EqualFold(words[1], "/c") {
		at = 2
	}
	if len(words) == 0 {
		return 0, ""
	}
	return at, programName(words[at])
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

// read finds the end of the runner's options, and the package.
func (l *launch) read(names, values []string) {
	i := l.options
	for ; i < len(l.words) && strings.HasPrefix(l.words[i], "-"); i++ {
		option, value, joined := strings.Cut(l.words[i], "=")
		names := slices.Contains(names, option)
		if !joined && (names || slices.Contains(values, option)) && i+1 < len(l.words) {
			i++
			value = l.words[i]
		}
		if names && l.at < 0 {
			l.at, l.id = i, value
		}
	}
	l.rest = i
	if l.registry != "" && l.at < 0 && i < len(l.words) {
		l.at, l.id = i, l.words[i]
	}
}

// isUV: uv runs it, and takes options about Python.
func (l *launch) isUV() bool { return l.runner == "uvx" || l.runner == "uv run" }

// told reports whether the runner was given one of these options.
func (l *launch) told(options ...string) bool {
	return slices.ContainsFunc(l.words[l.options:l.rest], func(w string) bool { return slices.Contains(options, w) })
}

// with is the command line with more arguments for the runner, before those that
// it has.
func (l *launch) with(args ...string) []string {
	return slices.Insert(slices.Clone(l.words), l.options, args...)
}

// A dockerLine is a "docker run".
type dockerLine struct {
	words []string
	// first and image are where the options of run begin and the image stands.
	first, image int
	// detached is the option that sends the container to the background, -1 if none
	// does. interactive: it has a standard input.
	detached    int
	interactive bool
}

// dockerSwitches are the options of docker run that take no value.
var dockerSwitches = []string{
	"--detach", "--interactive", "--tty", "--rm", "--init", "--privileged", "--read-only", "--publish-all",
	"--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--quiet", "--disable-content-trust",
}

// shortSwitches are those that may be written together, as in -it.
const shortSwitches = "ditPq"

func dockerRun(words []string) (dockerLine, bool) {
	if _, program := started(words); program != "docker" && program != "podman" {
		return dockerLine{}, false
	}
	first := slices.Index(words, "run") + 1
	if first == 0 || slices.Contains(words[:first], "compose") { // compose run has options of its own
		return dockerLine{}, false
	}
	d := dockerLine{words: words, first: first, detached: -1}
	i := first
	for ; i < len(words) && strings.HasPrefix(words[i], "-"); i++ {
		if d.option(i) {
			i++
		}
	}
	d.image = min(i, len(words))
	return d, true
}

// option reads one option and reports whether the next word is its value.
func (d *dockerLine) option(i int) (value bool) {
	w := d.words[i]
	if strings.HasPrefix(w, "--") {
		name, is, joined := strings.Cut(w, "=")
		if name == "--detach" && is != "false" {
			d.detached = i
		}
		if name == "--interactive" && is != "false" {
			d.interactive = true
		}
		return !joined && !slices.Contains(dockerSwitches, w)
	}
	for j, c := range w[1:] {
		switch {
		case c == 'd':
			d.detached = i
		case c == 'i':
			d.interactive = true
		case !strings.ContainsRune(shortSwitches, c): // its value is the rest of the word, or the next one
			return j+2 == len(w)
		}
	}
	return false
}

// isShort: nothing but switches in one word.
func isShort(w string) bool {
	return len(w) > 1 && w[0] == '-' && strings.Trim(w[1:], shortSwitches) == ""
}

// withFirst and withLast return the words with an option more, before or behind the others.
func (d dockerLine) withFirst(option string) []string {
	return slices.Insert(slices.Clone(d.words), d.first, option)
}

func (d dockerLine) withLast(options ...string) []string {
	return slices.Insert(slices.Clone(d.words), d.image, options...)
}

// passes reports whether a variable gets into the container.
func (d dockerLine) passes(name string) bool {
	options := d.words[d.first:d.image]
	for i, w := range options {
		value := ""
		switch {
		case (w == "-e" || w == "--env") && i+1 < len(options):
			value = options[i+1]
		case strings.HasPrefix(w, "--env="):
			value = strings.TrimPrefix(w, "--env=")
		case strings.HasPrefix(w, "-e") && len(w) > 2:
			value = w[2:]
		}
		if value == name || strings.HasPrefix(value, name+"=") {
			return true
		}
	}
	return false
}
