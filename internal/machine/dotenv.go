package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DotenvName is a variable that is set in a file such as .env. Its value is not
// here and never leaves the function that read it.
type DotenvName struct {
	Name string
	File string
	Line int
	// Empty is set if there is nothing behind the equals sign.
	Empty bool
}

const (
	maxDotenv      = 1 << 20
	maxDotenvFiles = 20
)

// DotenvNames lists the variables in the .env files of these folders, in order:
// .env first, then .env.local and the others by name. Examples and templates are
// left out, since they set nothing. What cannot be read is passed over.
func DotenvNames(dirs ...string) []DotenvName {
	var names []DotenvName
	seen := make(map[string]bool)
	for _, dir := range dirs {
		if dir = filepath.Clean(dir); seen[dir] || dir == "." {
			continue
		}
		seen[dir] = true
		for _, file := range dotenvFiles(dir) {
			data, err := ReadPlain(file, maxDotenv)
			if err != nil {
				continue
			}
			for _, n := range dotenvNames(data) {
				n.File = file
				names = append(names, n)
			}
		}
	}
	return names
}

func dotenvFiles(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries { // sorted by name, so ".env" comes first
		kind, ok := strings.CutPrefix(e.Name(), ".env")
		if !ok || kind != "" && kind[0] != '.' || len(files) == maxDotenvFiles {
			continue
		}
		if slices.ContainsFunc([]string{"example", "sample", "template", "dist", "defaults", "schema", "bak", "vault"}, func(word string) bool {
			return slices.Contains(strings.Split(strings.ToLower(kind), "."), word)
		}) {
			continue
		}
		files = append(files, filepath.Join(dir, e.Name()))
	}
	if i := slices.Index(files, filepath.Join(dir, ".env.local")); i > 1 {
		files = slices.Insert(slices.Delete(files, i, i+1), 1, filepath.Join(dir, ".env.local"))
	}
	return files
}

// dotenvNames reads the names of one file. A value in quotes may go on over lines,
// and what stands in it is no name.
func dotenvNames(data []byte) []DotenvName {
	var names []DotenvName
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := 1; len(data) > 0; line++ {
		text, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		text = bytes.TrimSpace(text)
		if after, ok := bytes.CutPrefix(text, []byte("export")); ok && len(after) > 0 && (after[0] == ' ' || after[0] == '\t') {
			text = bytes.TrimSpace(after)
		}
		name, value, ok := bytes.Cut(text, []byte("="))
		name, value = bytes.TrimSpace(name), bytes.TrimSpace(value)
		if !ok || !isVariableName(string(name)) {
			continue
		}
		n := DotenvName{Name: string(name), Line: line}
		if len(value) > 0 && strings.IndexByte("\"'`", value[0]) >= 0 {
			quote := value[0]
			if end := closing(value[1:], quote); end >= 0 {
				n.Empty = end == 0
			} else if end := closing(data, quote); end >= 0 {
				line += bytes.Count(data[:end], []byte("\n"))
				_, data, _ = bytes.Cut(data[end:], []byte("\n"))
				line++
			}
		} else {
			n.Empty = len(value) == 0 || value[0] == '#'
		}
		names = append(names, n)
	}
	return names
}

// closing is where the quote ends, -1 if it does not.
func closing(text []byte, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote:
			return i
		}
	}
	return -1
}

func isVariableName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '.' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}
