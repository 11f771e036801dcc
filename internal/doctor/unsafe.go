package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// An entry can take from its server the protection that everybody counts on. It works
// then, and whoever pasted it from somewhere should know.

const (
	kindUnverifiedTLS = "unverified_tls"
	kindPreload       = "preload"
)

// unverified are the variables that switch the check of certificates off, and the values
// that do so.
var unverified = map[string][]string{
	"NODE_TLS_REJECT_UNAUTHORIZED": {"0"},
	"PYTHONHTTPSVERIFY":            {"0"},
	"GIT_SSL_NO_VERIFY":            {"1", "true", "yes", "on"},
	"NPM_CONFIG_STRICT_SSL":        {"false", "0"},
	"YARN_ENABLE_STRICT_SSL":       {"false", "0"},
	"CURL_CA_BUNDLE":               {""}, // what libraries of Python take for "do not check"
	"REQUESTS_CA_BUNDLE":           {""},
	"HF_HUB_DISABLE_SSL_VERIFY":    {"1", "true"},
	"NODE_NO_TLS_VERIFY":           {"1", "true"},
	"DENO_TLS_NO_VERIFY":           {"1", "true"},
}

// unverifiedFlags do the same on a command line.
var unverifiedFlags = []string{"--unsafely-ignore-certificate-errors", "--use-openssl-insecure", "--no-check-certificate", "--tls-no-verify"}

// preloads are the variables that load code into whatever is started, and which of
// their values do.
var preloads = map[string]func(value string) bool{
	"LD_PRELOAD": notEmpty, "LD_AUDIT": notEmpty, "DYLD_INSERT_LIBRARIES": notEmpty, "DOTNET_STARTUP_HOOKS": notEmpty,
	"CORECLR_PROFILER_PATH": notEmpty, "COR_PROFILER_PATH": notEmpty, "BASH_ENV": notEmpty,
	"NODE_OPTIONS":      hasFlag("--require", "-r", "--import", "--loader", "--experimental-loader"),
	"RUBYOPT":           hasFlag("-r"),
	"PERL5OPT":          hasFlag("-M", "-m"),
	"JAVA_TOOL_OPTIONS": hasFlag("-javaagent", "-agentlib", "-agentpath"),
	"_JAVA_OPTIONS":     hasFlag("-javaagent", "-agentlib", "-agentpath"),
	"JDK_JAVA_OPTIONS":  hasFlag("-javaagent", "-agentlib", "-agentpath"),
}

func notEmpty(value string) bool { return strings.TrimSpace(value) != "" }

// hasFlag reports whether a list of options has one of these, with whatever is joined to it.
func hasFlag(flags ...string) func(string) bool {
	return func(value string) bool {
		return slices.ContainsFunc(strings.Fields(value), func(word string) bool {
			return slices.ContainsFunc(flags, func(flag string) bool {
				rest, ok := strings.CutPrefix(word, flag)
				return ok && (rest == "" || !strings.HasPrefix(flag, "--") || rest[0] == '=')
			})
		})
	}
}

// unsafeSettings finds such variables in an entry, also where they stand on its command
// line, as in "env NAME=value command" and "docker run -e NAME=value".
func unsafeSettings(s *clientconfig.Server) []Finding {
	var found []Finding
	for _, p := range s.Env {
		found = append(found, unsafeSetting(p.Name.Text, p.Value.Text, p.Value)...)
	}
	for _, a := range append([]clientconfig.Value{s.Command}, s.Args...) {
		if name, value, ok := strings.Cut(strings.TrimPrefix(a.Text, "--env="), "="); ok {
			found = append(found, unsafeSetting(strings.TrimPrefix(name, "-e"), value, a)...)
		}
		flag, _, _ := strings.Cut(a.Text, "=")
		if slices.Contains(unverifiedFlags, flag) {
			found = append(found, unsafeFinding(kindUnverifiedTLS, flag, a))
		}
	}
	return found
}

func unsafeSetting(name, value string, at clientconfig.Value) []Finding {
	upper := strings.ToUpper(name)
	if values, ok := unverified[upper]; ok && slices.Contains(values, strings.ToLower(strings.TrimSpace(value))) {
		return []Finding{unsafeFinding(kindUnverifiedTLS, name, at)}
	}
	if loads, ok := preloads[upper]; ok && loads(value) {
		return []Finding{unsafeFinding(kindPreload, name, at)}
	}
	return nil
}

func unsafeFinding(kind, name string, at clientconfig.Value) Finding {
	f := finding(AtVariables, kind, Warning, place(at.At))
	f.entryVariable = name
	if kind == kindPreload {
		f.Evidence = []string{name + " is set"}
		f.Explanation = fmt.Sprintf("%s loads code into the server, and into every program that it starts, before they run.", name)
		return f
	}
	f.Evidence = []string{name + " switches the check off"}
	f.Explanation = fmt.Sprintf("%s switches the check of certificates off: whoever is between the server and the services it talks to can read and change everything, its credentials included.", name)
	return f
}

// safer is what a person can do about it. Nothing of it is done for them: the server may
// not work without.
func safer(_ context.Context, t *treatment) []Fix {
	name := t.f.entryVariable
	if t.f.Kind == kindPreload {
		return []Fix{never("by_hand", "", "remove %s at %s, unless you know what it loads and want that", name, t.where())}
	}
	return []Fix{never("by_hand", "", "remove %s at %s; if a certificate of your own is not trusted then, name its file (NODE_EXTRA_CA_CERTS, SSL_CERT_FILE) instead", name, t.where())}
}
