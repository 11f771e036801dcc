package secret

import (
	"strings"
)

// Args is a command line that is safe to show. It sees more than Scrub would in
// the same words: a value may be in the argument behind its flag.
func Args(argv []string) []string {
	out := make([]string, len(argv))
	flag := "" // the one in front, if this may be its value
	for i, arg := range argv {
		out[i] = showArg(flag, arg)
		flag = ""
		if strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") {
			flag = arg
		}
	}
	return out
}

func showArg(flag, arg string) string {
	switch name := strings.TrimLeft(flag, "-"); {
	case isReference(arg):
		return arg
	case flag == "-u" || flag == "--user":
		if user, _, ok := strings.Cut(arg, ":"); ok {
			return user + ":" + Mark
		}
	case flag == "-H" || name == "header" || name == "headers":
		return showHeader(arg)
	case flag != "" && Name(name) && !isFlag(arg):
		if isPath(arg) {
			return Scrub(arg)
		}
		return Mark
	}
	name, value, ok := strings.Cut(arg, "=")
	if !ok || flag == "-c" || strings.ContainsAny(name, " :/?\"'{") {
		return Scrub(arg)
	}
	switch bare := strings.TrimLeft(name, "-"); {
	case bare == "header" || bare == "headers":
		return name + "=" + showHeader(value)
	case strings.HasPrefix(name, "-e") && !strings.HasPrefix(name, "--"):
		bare = bare[1:] // docker takes -eNAME=value
		fallthrough
	default:
		if tells(bare, value) {
			return name + "=" + Mark
		}
	}
	return Scrub(arg)
}

func showHeader(header string) string {
	name, value, ok := strings.Cut(header, ":")
	if !ok {
		name, value, ok = strings.Cut(header, "=")
	}
	trimmed := strings.TrimSpace(value)
	if !ok || !tells(name, trimmed) {
		return Scrub(header)
	}
	lead := header[:len(header)-len(strings.TrimLeft(value, " \t"))]
	if scheme, reference, ok := strings.Cut(trimmed, " "); ok && schemes[strings.ToLower(scheme)] {
		if isReference(reference) {
			return header
		}
		return lead + scheme + " " + Mark
	}
	return lead + Mark
}

// isFlag tells a flag from a value that happens to begin with a dash.
func isFlag(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return strings.HasPrefix(arg, "-") && isWord(name)
}

// tells reports whether the value of a variable or header is a secret: by its
// name, or because it looks like nothing else.
func tells(name, value string) bool {
	switch {
	case value == "" || isReference(value) || isPath(value) || trivial[strings.ToLower(value)]:
		return false
	case Name(name):
		return true
	case strings.Contains(value, "://"):
		return false // only a part of it may be
	case isDigit(value[0]) && shapes.timestamp().MatchString(value):
		return false
	}
	m := measure(value)
	return len(value) >= 6 && !strings.ContainsAny(value, " \t\n") && m.digits >= 2 && m.mixed >= 3 && m.bits >= 2
}
