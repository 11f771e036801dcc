package registry

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The types below are the parts of the registry's answers that we use: API v0.1,
// server.json of 2025-12-11. Older answers lack some members; later ones have
// more.

type listing struct {
	// Servers are decoded one by one, so that a broken one is skipped.
	Servers  []json.RawMessage `json:"servers"`
	Metadata struct {
		NextCursor string `json:"nextCursor"`
	} `json:"metadata"`
}

type listed struct {
	Server serverJSON `json:"server"`
	Meta   struct {
		Official *struct {
			Status        Status    `json:"status"`
			StatusMessage string    `json:"statusMessage"`
			PublishedAt   time.Time `json:"publishedAt"`
			UpdatedAt     time.Time `json:"updatedAt"`
			IsLatest      *bool     `json:"isLatest"`
		} `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

type serverJSON struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
	WebsiteURL  string `json:"websiteUrl"`
	Repository  struct {
		URL string `json:"url"`
	} `json:"repository"`
	Packages []struct {
		RegistryType         string      `json:"registryType"`
		Identifier           string      `json:"identifier"`
		Version              string      `json:"version"`
		RuntimeHint          string      `json:"runtimeHint"`
		Transport            transport   `json:"transport"`
		RuntimeArguments     []inputJSON `json:"runtimeArguments"`
		PackageArguments     []inputJSON `json:"packageArguments"`
		EnvironmentVariables []inputJSON `json:"environmentVariables"`
	} `json:"packages"`
	Remotes []struct {
		Type    string      `json:"type"`
		URL     string      `json:"url"`
		Headers []inputJSON `json:"headers"`
	} `json:"remotes"`
}

// inputJSON is an argument, an environment variable or a header.
type inputJSON struct {
	Name        string               `json:"name"`
	ValueHint   string               `json:"valueHint"`
	Value       string               `json:"value"`
	Description string               `json:"description"`
	Default     string               `json:"default"`
	Format      string               `json:"format"`
	Choices     []string             `json:"choices"`
	IsRequired  bool                 `json:"isRequired"`
	IsSecret    bool                 `json:"isSecret"`
	IsRepeated  bool                 `json:"isRepeated"`
	Variables   map[string]inputJSON `json:"variables"`
}

// Limits for one entry. The registry allows 100 bytes of description and 500 of
// status message; what it does not limit we do.
const (
	maxItems = 64
	maxName  = 256
	maxText  = 300
)

// entry turns a row of the listing into an entry. It is false if there is nothing
// in it for us, and has no name if it says nothing about a server at all.
func (l *listed) entry() (Entry, bool) {
	s := &l.Server
	e := Entry{
		Name:        clean(s.Name, maxName),
		Title:       clean(s.Title, 100),
		Description: clean(s.Description, 100),
		Version:     clean(s.Version, 64),
		Repository:  cleanURL(s.Repository.URL),
		Website:     cleanURL(s.WebsiteURL),
	}
	if e.Name == "" || e.Name != s.Name {
		return Entry{}, false
	}
	if o := l.Meta.Official; o != nil {
		if o.IsLatest != nil && !*o.IsLatest {
			return Entry{}, false
		}
		e.Updated = o.UpdatedAt
		if e.Updated.IsZero() {
			e.Updated = o.PublishedAt
		}
		if o.Status == Deprecated || o.Status == Deleted {
			e.Status, e.StatusMessage = o.Status, clean(o.StatusMessage, 500)
		}
	}
	for _, p := range s.Packages[:min(len(s.Packages), maxItems)] {
		if packageKey(p.RegistryType, p.Identifier) == "" || p.Identifier != clean(p.Identifier, 512) {
			continue
		}
		e.Packages = append(e.Packages, Package{
			Type:             clean(strings.ToLower(p.RegistryType), 32),
			Identifier:       p.Identifier,
			Version:          clean(p.Version, 64),
			Runtime:          clean(p.RuntimeHint, 64),
			Transport:        clean(p.Transport.Type, 32),
			RuntimeArguments: arguments(p.RuntimeArguments),
			Arguments:        arguments(p.PackageArguments),
			Variables:        append(variables(p.EnvironmentVariables), dockerVariables(p.RuntimeArguments)...),
		})
	}
	for _, m := range s.Remotes[:min(len(s.Remotes), maxItems)] {
		if remoteKey(m.URL) == "" || m.URL != clean(m.URL, 512) {
			continue
		}
		e.Remotes = append(e.Remotes, Remote{Type: clean(m.Type, 32), URL: m.URL, Headers: variables(m.Headers)})
	}
	return e, len(e.Packages)+len(e.Remotes) > 0
}

func arguments(in []inputJSON) []Argument {
	var out []Argument
	for _, a := range in[:min(len(in), maxItems)] {
		secret := a.secret()
		arg := Argument{
			Name:        clean(a.Name, maxName),
			Hint:        clean(a.ValueHint, maxName),
			Description: clean(a.Description, maxText),
			Choices:     a.choices(),
			Required:    a.IsRequired,
			Secret:      secret,
			Repeated:    a.IsRepeated,
		}
		if !secret {
			arg.Value, arg.Default = clean(a.Value, maxText), clean(a.Default, maxText)
		}
		out = append(out, arg)
	}
	return out
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func variables(in []inputJSON) []Variable {
	var out []Variable
	for _, v := range in[:min(len(in), maxItems)] {
		// A value that is set leaves nothing to ask for, unless there are variables in it.
		if !variableName.MatchString(v.Name) || len(v.Name) > maxName {
			continue
		}
		out = append(out, v.variable(v.Name))
	}
	return out
}

func (v inputJSON) variable(name string) Variable {
	secret := v.secret()
	out := Variable{
		Name:        name,
		Description: clean(v.Description, maxText),
		Format:      clean(v.Format, 32),
		Choices:     v.choices(),
		Required:    v.IsRequired,
		Secret:      secret,
	}
	for _, inner := range v.Variables {
		out.Required = out.Required || inner.IsRequired
	}
	if len(v.Variables) == 0 && v.Value != "" {
		// A fixed value is not the user's to give.
		out.Required = false
		if !secret {
			out.Default = clean(v.Value, maxText)
		}
	}
	if !secret && v.Default != "" {
		out.Default = clean(v.Default, maxText)
	}
	return out
}

func (v inputJSON) secret() bool {
	if v.IsSecret {
		return true
	}
	for _, inner := range v.Variables {
		if inner.IsSecret {
			return true
		}
	}
	return false
}

func (v inputJSON) choices() []string {
	if v.secret() {
		return nil
	}
	var out []string
	for _, c := range v.Choices[:min(len(v.Choices), maxItems)] {
		out = append(out, clean(c, 100))
	}
	return out
}

// dockerVariables are the environment variables that a container is given on the
// command line, "-e NAME={token}". Publishers of images write them there and not
// among the variables, GitHub's own server for one.
func dockerVariables(args []inputJSON) []Variable {
	var out []Variable
	for _, a := range args[:min(len(args), maxItems)] {
		if a.Name != "-e" && a.Name != "--env" {
			continue
		}
		name, _, _ := strings.Cut(a.Value, "=")
		if !variableName.MatchString(name) || len(name) > maxName ||
			slices.ContainsFunc(out, func(v Variable) bool { return v.Name == name }) {
			continue
		}
		v := a
		if _, value, _ := strings.Cut(a.Value, "="); strings.Contains(value, "{") || value == "" {
			v.Value = ""
		} else {
			v.Value = value
		}
		out = append(out, v.variable(name))
	}
	return out
}

type transport struct {
	Type string `json:"type"`
}
