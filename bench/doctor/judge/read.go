package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// An entry is a server as it stands in a file.
type entry map[string]any

// scopeOf is where an entry says of which scope it is; no client has a part of that name.
const scopeOf = "\x00scope"

func (e entry) ofProject() bool { return e[scopeOf] == "project" || e[scopeOf] == "local" }

// read returns the servers of a client by name. A file that is not there has none; one
// that the client cannot read is an error.
func (h *habit) read(m Machine, scope string) (map[string]entry, error) {
	found := map[string]entry{}
	for _, p := range h.files {
		if scope != "" && p.scope != scope {
			continue
		}
		name := filepath.Join(m.Project, p.path)
		if rest, ok := strings.CutPrefix(p.path, "~/"); ok {
			name = filepath.Join(m.Home, rest)
		}
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no file", name)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		root, err := parse(p.format, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		for _, key := range p.key {
			if key == "{project}" {
				key = m.Project
			}
			inner, ok := root.(map[string]any)
			if !ok && root != nil {
				return nil, fmt.Errorf("%s: no object around %q", filepath.Base(name), key)
			}
			root = inner[key]
		}
		if err := collect(found, root, p); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return found, nil
}

// collect adds servers, of which the first of a name wins.
func collect(found map[string]entry, servers any, p place) error {
	add := func(name string, v any) error {
		e, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%q is no object", name)
		}
		if _, taken := found[name]; !taken {
			e[scopeOf] = p.scope
			found[name] = e
		}
		return nil
	}
	switch servers := servers.(type) {
	case nil:
		return nil
	case map[string]any:
		if p.list {
			break
		}
		for name, v := range servers {
			if err := add(name, v); err != nil {
				return err
			}
		}
		return nil
	case []any:
		if !p.list {
			break
		}
		for _, v := range servers {
			e, _ := v.(map[string]any)
			name, ok := e["name"].(string)
			if !ok {
				return errors.New("a server without a name")
			}
			if err := add(name, v); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("the servers are a %T", servers)
}

// parse reads a file. "commented" is strict JSON out of which comments are taken, and
// no byte order mark.
func parse(format string, data []byte) (root any, err error) {
	if format != "commented" {
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	switch format {
	case "toml":
		err = toml.Unmarshal(data, &root)
	case "yaml":
		err = yaml.Unmarshal(data, &root)
	default:
		if format == "jsonc" || format == "commented" {
			data = withoutComments(data, format == "jsonc")
		}
		d := json.NewDecoder(bytes.NewReader(data))
		if err = d.Decode(&root); err == nil {
			if _, more := d.Token(); more != io.EOF {
				err = errors.New("more than one value")
			}
		}
	}
	return root, err
}

// withoutComments takes comments out of JSON, and trailing commas if they are allowed.
func withoutComments(data []byte, commas bool) []byte {
	var out []byte
	for i := 0; i < len(data); i++ {
		rest := data[i:]
		switch {
		case data[i] == '"':
			end := 1
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(rest)-1)
			out = append(out, rest[:end+1]...)
			i += end
		case bytes.HasPrefix(rest, []byte("//")):
			if n := bytes.IndexByte(rest, '\n'); n >= 0 {
				i += n - 1
			} else {
				i = len(data)
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest, []byte("*/"))
			if n < 0 {
				return out
			}
			i += n + 1
		case commas && (data[i] == '}' || data[i] == ']'):
			out = bytes.TrimRight(out, " \t\r\n")
			out = append(bytes.TrimSuffix(out, []byte(",")), data[i])
		default:
			out = append(out, data[i])
		}
	}
	return out
}

func (e entry) text(name string) (string, error) {
	v, ok := e[name]
	if !ok || name == "" {
		return "", nil
	}
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s is no text", name)
	}
	return text, nil
}

func (e entry) list(name string) ([]string, error) {
	v, ok := e[name]
	if !ok || v == nil {
		return nil, nil
	}
	items, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is no list", name)
	}
	var list []string
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("%s holds something else than texts", name)
		}
		list = append(list, text)
	}
	return list, nil
}

func (e entry) object(name string) (map[string]string, error) {
	v, ok := e[name]
	if !ok || v == nil {
		return nil, nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object", name)
	}
	texts := map[string]string{}
	for key, value := range object {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("%s of %s is no text", key, name)
		}
		texts[key] = text
	}
	return texts, nil
}

// variables are those that the entry sets.
func (e entry) variables(name string, s *start) error {
	object, err := e.object(name)
	for key, value := range object {
		s.set = append(s.set, key+"="+value)
	}
	return err
}

func (e entry) headers(name string, s *start) error {
	object, err := e.object(name)
	for key, value := range object {
		s.header.Set(key, value)
	}
	return err
}
