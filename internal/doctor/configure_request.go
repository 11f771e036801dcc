package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/registry"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// A request becomes an entry in no client's words, and then in those of each.

// server turns a request into an entry in no client's words.
func (r *ConfigureRequest) server() (*clientconfig.Server, error) {
	if r.Name == "" || strings.ContainsFunc(r.Name, func(c rune) bool { return c < ' ' }) {
		return nil, errors.New("a server needs a name")
	}
	if strings.HasPrefix(r.Name, "-") {
		return nil, errors.New("the name of a server cannot begin with a dash: on a command line it would be a flag")
	}
	given := 0
	for _, there := range []bool{r.Package != "", r.URL != "", len(r.Command) > 0} {
		if there {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("give one of a package, a URL and a command")
	}
	s := &clientconfig.Server{Name: text(r.Name), Transport: r.Transport}
	var err error
	if s.Env, err = r.variables(); err != nil {
		return nil, err
	}
	for _, h := range r.Headers {
		name, value, ok := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		if !ok || r.URL == "" {
			return nil, errors.New("headers are for URLs, each as 'Name: value'")
		}
		if secret.Args([]string{"--header", h})[1] != h {
			return nil, fmt.Errorf("the header %s would hold a secret in clear: write ${NAME} for a variable that has it", name)
		}
		s.Headers = append(s.Headers, clientconfig.Pair{Name: text(strings.TrimSpace(name)), Value: text(value)})
	}
	switch {
	case r.URL != "":
		u, err := url.Parse(r.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("a URL begins with http:// or https:// and has a host")
		}
		if len(r.Args) > 0 || len(s.Env) > 0 {
			return nil, errors.New("a URL takes no arguments and no variables; send a header")
		}
		s.URL = text(r.URL)
		return s, nil
	case r.Package != "":
		err = r.runPackage(s)
	default:
		s.Command, s.Args = text(r.Command[0]), texts(append(slices.Clone(r.Command[1:]), r.Args...))
	}
	if err != nil {
		return nil, err
	}
	words := argvOf(s)
	for i, shown := range secret.Args(words) {
		if shown != words[i] {
			return nil, fmt.Errorf("argument %d looks like a secret: name a variable with it under secrets, or write ${NAME}", i)
		}
	}
	return s, nil
}

// variables are those of the request, a secret as a reference to itself.
func (r *ConfigureRequest) variables() ([]clientconfig.Pair, error) {
	var env []clientconfig.Pair
	for _, e := range r.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || !variableName().MatchString(name) {
			return nil, errors.New("a variable is written as NAME=value")
		}
		if secret.Args([]string{e})[0] != e {
			return nil, fmt.Errorf("%s would hold a secret in clear: name it as a secret (--secret %s), and the entry refers to it", name, name)
		}
		env = append(env, clientconfig.Pair{Name: text(name), Value: text(value)})
	}
	for _, name := range r.Secrets {
		if !variableName().MatchString(name) {
			return nil, errors.New("a secret is given by the name of its variable")
		}
		env = append(env, clientconfig.Pair{Name: text(name), Value: text("${" + name + "}")})
	}
	return env, nil
}

var (
	variableName = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// A package's name comes from anywhere and stands where a flag could.
	packageName = pattern(`^@?[A-Za-z0-9][A-Za-z0-9._~:/@=\[\],-]*$`)
)

// runPackage is how a package of each kind is run.
func (r *ConfigureRequest) runPackage(s *clientconfig.Server) error {
	kind, id := r.packageKind()
	if !packageName().MatchString(id) {
		return errors.New("that is no name of a package")
	}
	switch kind {
	case "npm":
		s.Command, s.Args = text("npx"), texts([]string{"-y", id})
	case "pypi":
		s.Command, s.Args = text("uvx"), texts([]string{id})
	case "oci":
		s.Command, s.Args = text("docker"), texts([]string{"run", "-i", "--rm"})
		for _, e := range s.Env {
			s.Args = append(s.Args, text("-e"), e.Name)
		}
		s.Args = append(s.Args, text(id))
	default:
		return fmt.Errorf("packages of the kind %q are not known; npm, pypi and oci are", kind)
	}
	s.Args = append(s.Args, texts(r.Args)...)
	return nil
}

func (r *ConfigureRequest) packageKind() (kind, id string) {
	if kind, id, ok := strings.Cut(r.Package, ":"); ok {
		return kind, id
	}
	return "npm", r.Package
}

// lacks says what the registry demands and the request does not have.
func (r *ConfigureRequest) lacks(known registry.Entry) error {
	pkg, ok := known.Find(r.packageKind())
	if !ok || r.Anyway {
		return nil
	}
	var missing []string
	for _, v := range pkg.Variables {
		if !v.Required || v.Default != "" || v.Given(r.sets, r.Args) {
			continue
		}
		word := v.Name
		if v.Secret {
			word += " (secret)"
		}
		if v.Help != "" {
			word += ", see " + v.Help
		}
		missing = append(missing, word)
	}
	if len(r.Args) == 0 {
		for _, a := range pkg.Arguments {
			if name := cmp.Or(a.Name, a.Hint); a.Required && a.Value == "" && a.Default == "" && name != "" {
				missing = append(missing, "the argument "+name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("it needs %s", strings.Join(missing, "; "))
}

// sets reports whether a variable is in the request.
func (r *ConfigureRequest) sets(name string) bool {
	return slices.Contains(r.Secrets, name) || slices.ContainsFunc(r.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
}

// reference finds ${NAME} in the values of a request.
var reference = pattern(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// spell writes an entry as one client does. It returns the variables that the
// client would keep in clear.
func spell(c *clientconfig.Client, scope string, wanted *clientconfig.Server, r *ConfigureRequest) (*clientconfig.Server, []string, error) {
	s := *wanted
	var clear []string
	var failed error
	respell := func(part, value string) string {
		return reference().ReplaceAllStringFunc(value, func(ref string) string {
			name := ref[2 : len(ref)-1]
			for _, source := range []clientconfig.Source{clientconfig.Environment, clientconfig.Secret} {
				if own := c.Refer(part, clientconfig.Reference{Name: name, Source: source}); own != "" {
					return own
				}
			}
			typed, ok := r.Values[name]
			switch {
			case scope == "project":
				failed = fmt.Errorf("%s cannot refer to a variable in %s, and %s must not stand in clear in a file that is shared", c.Name, part, name)
				return ref
			case !ok:
				failed = fmt.Errorf("%s cannot refer to a variable in %s and would keep %s in clear; a person has to type it: mcpmend configure, with --secret %s", c.Name, part, name, name)
			}
			if !slices.Contains(clear, name) {
				clear = append(clear, name)
			}
			return typed
		})
	}
	s.Args = nil
	for _, a := range wanted.Args {
		s.Args = append(s.Args, text(respell("args", a.Text)))
	}
	s.URL.Text = respell("url", wanted.URL.Text)
	s.Env, s.EnvFrom = nil, nil
	for _, p := range wanted.Env {
		if m := reference().FindStringSubmatch(p.Value.Text); m != nil && m[0] == p.Value.Text && m[1] == p.Name.Text && c.Entry.EnvFrom != "" {
			s.EnvFrom = append(s.EnvFrom, p.Name)
			continue
		}
		s.Env = append(s.Env, clientconfig.Pair{Name: p.Name, Value: text(respell("env", p.Value.Text))})
	}
	s.Headers, s.HeadersFrom = nil, nil
	for _, p := range wanted.Headers {
		if m := reference().FindStringSubmatch(p.Value.Text); m != nil && m[0] == p.Value.Text && c.Entry.HeadersFrom != "" {
			s.HeadersFrom = append(s.HeadersFrom, clientconfig.Pair{Name: p.Name, Value: text(m[1])})
			continue
		}
		s.Headers = append(s.Headers, clientconfig.Pair{Name: p.Name, Value: text(respell("headers", p.Value.Text))})
	}
	return &s, clear, failed
}

func text(s string) clientconfig.Value { return clientconfig.Value{Text: s} }

func texts(words []string) []clientconfig.Value {
	var vs []clientconfig.Value
	for _, w := range words {
		vs = append(vs, text(w))
	}
	return vs
}
