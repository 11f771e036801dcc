package machine

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// OS is an operating system by its name in GOOS, with its rules for paths; "" is the
// one we run on. Package filepath knows no other.
type OS string

// orOurs is the system with its name.
func (o OS) orOurs() OS { return cmp.Or(o, OS(runtime.GOOS)) }

// IsWindows reports whether its rules are those of Windows.
func (o OS) IsWindows() bool { return o.orOurs() == windows }

// IsPath reports whether a command is a path. Anything else is a name that is
// looked for in the PATH.
func (o OS) IsPath(command string) bool {
	return strings.Contains(command, "/") || o.IsWindows() && strings.ContainsAny(command, `\:`)
}

// IsAbs reports whether a path means the same from every folder.
func (o OS) IsAbs(name string) bool {
	if !o.IsWindows() {
		return strings.HasPrefix(name, "/")
	}
	return len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/') || strings.HasPrefix(name, `\\`)
}

// Join is a file in a folder. Windows takes either slash, so the folder's own is
// kept.
func (o OS) Join(dir, name string) string {
	if !o.IsWindows() {
		return path.Join(dir, name)
	}
	slash := `\`
	if strings.Contains(dir, "/") && !strings.Contains(dir, `\`) {
		slash = "/"
	}
	return strings.TrimRight(dir, `\/`) + slash + name
}

// Dir is the folder of a file.
func (o OS) Dir(file string) string {
	if !o.IsWindows() {
		return path.Dir(file)
	}
	return file[:max(strings.LastIndexAny(file, `\/`), 0)]
}

// ListSeparator stands between the folders of a PATH.
func (o OS) ListSeparator() string {
	if o.IsWindows() {
		return ";"
	}
	return ":"
}

// Folders takes a PATH apart. An empty one would mean the current folder, which is
// no place to find a server by accident.
func (o OS) Folders(path string) []string {
	folders := strings.Split(path, o.ListSeparator())
	if o.IsWindows() {
		for i, f := range folders {
			folders[i] = strings.Trim(f, `"`)
		}
	}
	return slices.DeleteFunc(folders, func(f string) bool { return f == "" })
}

// ErrProgramMissing means that there is no file for a command.
var ErrProgramMissing = errors.New("is not there")

// Why a file that is there cannot be started. The words follow its name.
var (
	errNotExecutable = errors.New("may not be executed")
	errIsFolder      = errors.New("is a folder")
	errNoProgram     = errors.New("is no plain file")
	errUnsearchable  = errors.New("is in a folder that may not be searched")
)

// A Search finds programs as somebody else would, whose PATH, folder and operating
// system need not be ours. It is exec.LookPath for a client's environment.
type Search struct {
	OS OS
	// Path is the PATH.
	Path string
	// Dir is where the program would be started; what is relative counts from there.
	Dir string
	// Endings is the variable PATHEXT of Windows. "" is what Windows runs without
	// being told how: beside npx.cmd npm puts a file npx, which is a shell script and
	// no use there.
	Endings string
	// Stat looks at a file; nil is os.Stat.
	Stat func(string) (fs.FileInfo, error)
}

// Find returns the file that a command stands for; [ErrProgramMissing] if there is
// none. With any other error comes the file that is there and cannot be started:
// that is what the user will have to look at.
func (s Search) Find(command string) (string, error) {
	if command == "" {
		return "", ErrProgramMissing
	}
	if s.OS.IsPath(command) {
		return s.look(s.Absolute(command))
	}
	var second string
	var why error
	for _, folder := range s.OS.Folders(s.Path) {
		file, err := s.look(s.Absolute(s.OS.Join(folder, command)))
		switch {
		case err == nil:
			return file, nil
		case err == ErrProgramMissing, err == errIsFolder:
		case why == nil:
			second, why = file, err // a better one may follow
		}
	}
	if why == nil {
		return "", ErrProgramMissing
	}
	return second, why
}

// Absolute is a path as seen from the folder in which the program would start.
func (s Search) Absolute(name string) string {
	if s.OS.IsAbs(name) || s.Dir == "" {
		return name
	}
	return s.OS.Join(s.Dir, name)
}

// look looks at one place, on Windows at the file with each ending of a program.
func (s Search) look(name string) (string, error) {
	folder := ""
	for _, file := range s.spellings(name) {
		switch err := s.executable(file); err {
		case ErrProgramMissing:
		case errIsFolder:
			folder = file // npx.cmd may stand beside a folder npx
		default:
			return file, err
		}
	}
	if folder != "" {
		return folder, errIsFolder
	}
	return "", ErrProgramMissing
}

// spellings are the files that a name may mean.
func (s Search) spellings(name string) []string {
	if !s.OS.IsWindows() {
		return []string{name}
	}
	endings := s.Endings
	if endings == "" {
		endings = ".com;.exe;.bat;.cmd"
	}
	var files []string
	for ending := range strings.SplitSeq(strings.ToLower(endings), ";") {
		if ending == "" {
			continue
		}
		if strings.HasSuffix(strings.ToLower(name), ending) {
			files = slices.Insert(files, 0, name)
		}
		files = append(files, name+ending)
	}
	return files
}

// executable says why a file cannot be started on this operating system, nil if it
// can.
func executable(file string, system OS) error { return Search{OS: system}.executable(file) }

func (s Search) executable(file string) error {
	stat := s.Stat
	if stat == nil {
		stat = os.Stat
	}
	info, err := stat(file)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return errUnsearchable
	case err != nil:
		return ErrProgramMissing
	case info.IsDir():
		return errIsFolder
	case !info.Mode().IsRegular(): // to look into a pipe is to wait for ever
		return errNoProgram
	case !s.OS.IsWindows() && runtime.GOOS != windows && info.Mode().Perm()&0o111 == 0:
		return errNotExecutable
	}
	return nil
}
