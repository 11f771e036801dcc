package clientconfig

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// A System says where to look. The zero value is this machine, without a
// project.
type System struct {
	// OS is as in GOOS; "" is the one we run on.
	OS string
	// Home is the user's home folder; "" asks the operating system.
	Home string
	// Getenv looks up a variable; nil is os.Getenv.
	Getenv func(string) string
	// Project is the absolute path of the folder a client would be opened in; ""
	// leaves project files out.
	Project string
	// Root stands before absolute paths of the table, such as /etc; "" is the real
	// root.
	Root string
}

// Path returns the file that a place stands for here: the one to create if none
// exists. It is "" where the place does not apply, such as a project file
// without a project or a row of another system.
func (s System) Path(p Place) string {
	if p.OS != "" && p.OS != s.os() {
		return ""
	}
	return s.expand(p.Path)
}

var pathVariable = regexp.MustCompile(`\$\{(\w+)(:-([^}]*))?\}`)

// expand turns a path of the table into one of this system, or "".
func (s System) expand(p string) string {
	if strings.HasPrefix(p, "/") {
		return filepath.Join(s.Root+"/", filepath.FromSlash(p))
	}
	missing := false
	p = pathVariable.ReplaceAllStringFunc(p, func(ref string) string {
		m := pathVariable.FindStringSubmatch(ref)
		if v := s.getenv(m[1]); v != "" {
			return filepath.ToSlash(v)
		}
		missing = missing || m[2] == ""
		return m[3]
	})
	if missing {
		return ""
	}
	switch rest, home := strings.CutPrefix(p, "~"); {
	case home && (rest == "" || rest[0] == '/'):
		if s.home() == "" {
			return ""
		}
		return filepath.Join(s.home(), filepath.FromSlash(rest))
	case strings.HasPrefix(p, "/") || filepath.IsAbs(filepath.FromSlash(p)) || driveLetter.MatchString(p):
		return filepath.FromSlash(p)
	case s.Project == "":
		return ""
	}
	return filepath.Join(s.Project, filepath.FromSlash(p))
}

var driveLetter = regexp.MustCompile(`^[A-Za-z]:/`)

func (s System) os() string {
	if s.OS != "" {
		return s.OS
	}
	return runtime.GOOS
}

func (s System) getenv(name string) string {
	if s.Getenv != nil {
		return s.Getenv(name)
	}
	return os.Getenv(name)
}

func (s System) home() string {
	if s.Home != "" {
		return s.Home
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}
