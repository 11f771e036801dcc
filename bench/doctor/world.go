package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/rogpeppe/go-internal/txtar"
)

// A world is a machine made for one set-up: folders, ports, running programs,
// secrets that stand nowhere else.
type world struct {
	setup   *setup
	dir     string
	words   map[string]string // what the templates stand for
	secrets []string
	env     []string
	running []*child.Child
	closers []func() error
}

// errVoid is what a set-up ends with that cannot be made on this machine.
var errVoid = errors.New("void")

// runners are the programs that fetch, install or change things. A set-up that
// does not bring its own finds one that only writes down that it was run.
var runners = []string{
	"npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx", "pip", "pip3", "docker", "podman",
	"brew", "sudo", "chown", "pkill", "killall",
}

func newWorld(ctx context.Context, t *tools, s *setup, dir string, random *rand.Rand) (w *world, err error) {
	// The state folder and the journal must not be below a folder that is compared.
	w = &world{setup: s, dir: dir, words: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	for _, name := range []string{"home", "project", "bin", "tmp", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, err
		}
	}
	w.words["HOME"], w.words["PROJECT"], w.words["BIN"], w.words["TMP"] = w.path("home"), w.path("project"), w.path("bin"), w.path("tmp")
	w.words["JOURNAL"], w.words["PATIENT"], w.words["MCPMEND"] = w.path("journal"), t.patient, t.mcpmend
	w.words["NODE"], w.words["PYTHON"] = t.node, t.python
	for i, prefix := range []string{"ghp_", "", "sk-proj-"} {
		secret := prefix + letters(random, 36)
		w.secrets = append(w.secrets, secret)
		w.words["SECRET"+[]string{"", "2", "3"}[i]] = secret
	}
	for _, need := range s.Needs {
		if err := t.has(need); err != nil {
			return w, err
		}
	}
	for _, p := range s.Parts {
		if err := w.before(ctx, t, p); err != nil {
			return w, fmt.Errorf("%s: %w", p.kind, err)
		}
	}
	for _, name := range runners {
		text := "#!/bin/sh\necho \"" + name + " $*\" >> " + w.words["JOURNAL"] + "\nexit 97\n"
		if err := os.WriteFile(w.path("bin/"+name), []byte(text), 0o755); err != nil {
			return w, err
		}
	}
	if err := w.write(s.Files); err != nil {
		return w, err
	}
	w.env = w.environ(t)
	for _, p := range s.Parts {
		if err := w.after(ctx, t, p); err != nil {
			return w, fmt.Errorf("%s: %w", p.kind, err)
		}
	}
	return w, nil
}

func letters(random *rand.Rand, n int) string {
	const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(b)
}

func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// fill puts this world's values into a template.
func (w *world) fill(text string) string {
	for name, value := range w.words {
		text = strings.ReplaceAll(text, "{{"+name+"}}", value)
	}
	return text
}

// unfill is the other way, so that what was written can be compared and kept.
func (w *world) unfill(text string) string {
	names := make([]string, 0, len(w.words))
	for name, value := range w.words {
		if value != "" {
			names = append(names, name)
		}
	}
	// The longest first: a port may be part of an address.
	slices.SortFunc(names, func(a, b string) int {
		return 1000*(len(w.words[b])-len(w.words[a])) + strings.Compare(a, b)
	})
	for _, name := range names {
		text = strings.ReplaceAll(text, w.words[name], "{{"+name+"}}")
	}
	return text
}

func (w *world) write(files []txtar.File) error {
	for _, f := range files {
		name := w.path(w.fill(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o755
		}
		// A stand-in of the set-up takes the place of the one that only takes notes.
		if err := os.RemoveAll(name); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(w.fill(decode(f.Data))), mode); err != nil {
			return err
		}
	}
	return nil
}

// decode gives a file what txtar cannot hold: line ends of Windows, a byte order
// mark, no last line end, nothing at all.
func decode(data []byte) string {
	text := string(data)
	if rest, ok := strings.CutPrefix(text, "{{EMPTY}}\n"); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(text, "{{CRLF}}\n"); ok {
		text = strings.ReplaceAll(rest, "\n", "\r\n")
	}
	if rest, ok := strings.CutPrefix(text, "{{BOM CRLF}}\n"); ok {
		text = "\ufeff" + strings.ReplaceAll(rest, "\n", "\r\n")
	}
	return strings.Replace(text, "{{NO EOL}}\n", "", 1)
}

// encode is the other way.
func encode(text string) string {
	if text == "" {
		return "{{EMPTY}}\n"
	}
	if rest, ok := strings.CutPrefix(text, "\ufeff"); ok {
		text = "{{BOM CRLF}}\n" + strings.ReplaceAll(rest, "\r\n", "\n")
	} else if strings.Contains(text, "\r\n") {
		text = "{{CRLF}}\n" + strings.ReplaceAll(text, "\r\n", "\n")
	}
	if !strings.HasSuffix(text, "\n") {
		text += "{{NO EOL}}\n"
	}
	return text
}

// before makes the parts that the files mention.
func (w *world) before(ctx context.Context, t *tools, p part) error {
	name, rest, _ := strings.Cut(p.rest, " ")
	switch p.kind {
	case "listen": // NAME HOW: the patient over HTTP
		c, err := child.Start([]string{t.patient, "-http", "127.0.0.1:0", "-speak", rest}, w.dir, nil)
		if err != nil {
			return err
		}
		w.running = append(w.running, c)
		addr, err := c.Line(ctx, "listening ")
		if err != nil {
			return err
		}
		w.address(name, addr)
	case "closed": // NAME: a port on which nobody listens
		addr, release, err := closedPort()
		if err != nil {
			return err
		}
		w.closers = append(w.closers, release)
		w.address(name, addr)
	case "free": // NAME: a port that a program of the set-up takes
		addr, release, err := closedPort()
		if err != nil {
			return err
		}
		w.address(name, addr)
		return release()
	case "open": // NAME: something that accepts connections and says nothing
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		w.closers = append(w.closers, l.Close)
		go accept(l)
		w.address(name, l.Addr().String())
	case "npm":
		return w.npm(ctx, t, p.rest)
	case "nvm": // VERSION: a folder of nvm with that Node, or the machine's own
		return w.nvm(ctx, t, p.rest)
	}
	return nil
}

func (w *world) address(name, addr string) {
	_, port, _ := net.SplitHostPort(addr)
	w.words[name], w.words[name+".port"] = addr, port
}

func accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}()
	}
}

// closedPort is bound and does not listen: connections are refused, and nobody
// else gets the port meanwhile.
func closedPort() (addr string, release func() error, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	release = func() error { return syscall.Close(fd) }
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", nil, errors.Join(err, release())
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return "", nil, errors.Join(err, release())
	}
	return "127.0.0.1:" + strconv.Itoa(name.(*syscall.SockaddrInet4).Port), release, nil
}

// after makes the parts that need the files.
func (w *world) after(ctx context.Context, t *tools, p part) error {
	name, rest, _ := strings.Cut(w.fill(p.rest), " ")
	file := w.path(name)
	if slices.Contains([]string{"fifo", "folder", "link", "arm64", "pad"}, p.kind) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
	}
	switch p.kind {
	case "fifo":
		return syscall.Mkfifo(file, 0o644)
	case "folder":
		return os.MkdirAll(file, 0o755)
	case "link": // FILE TARGET
		return os.Symlink(rest, file)
	case "mode": // FILE MODE
		mode, err := strconv.ParseUint(rest, 8, 32)
		if err != nil {
			return err
		}
		return os.Chmod(file, fs.FileMode(mode))
	case "pad": // FILE MEGABYTES: a file that is far too large
		n, err := strconv.Atoi(rest)
		if err != nil {
			return err
		}
		return os.WriteFile(file, bytes.Repeat([]byte(" \n"), n<<19), 0o644)
	case "arm64": // FILE: a program for a processor that this is not
		return os.WriteFile(file, foreignProgram(), 0o755)
	case "run": // a program that runs all the while, and says "ready"
		c, err := child.Start(strings.Fields(w.fill(p.rest)), w.path("home"), w.env)
		if err != nil {
			return err
		}
		w.running = append(w.running, c)
		_, err = c.Line(ctx, "ready")
		return err
	case "npm":
		return w.npmReady(ctx, t, p.rest)
	}
	return nil
}

// foreignProgram is the head of an ELF file for a processor that nobody has here.
func foreignProgram() []byte {
	b := make([]byte, 4096)
	copy(b, "\x7fELF\x02\x01\x01")
	copy(b[16:], []byte{2, 0, 0xf3, 0, 1}) // an executable, for RISC-V
	return b
}

// environ is what a terminal of this user has.
func (w *world) environ(t *tools) []string {
	env := []string{
		"GEMINI_CLI_TRUST_WORKSPACE=true", // as for the real one; it uses no servers elsewhere
		"HOME=" + w.path("home"), "USER=somebody", "LOGNAME=somebody", "LANG=C.UTF-8", "TMPDIR=" + w.path("tmp"),
		"SHELL=" + t.shell, "PATH=" + w.path("bin") + ":" + t.path, "MCPMEND_STATE=" + w.path("state"),
		// Nothing here asks the world outside.
		"MCPMEND_REGISTRY=" + t.nowhere, "NPM_CONFIG_UPDATE_NOTIFIER=false",
	}
	for _, e := range w.setup.Env {
		env = append(env, w.fill(e))
	}
	return env
}

func (w *world) close() error {
	var errs []error
	for _, c := range w.running {
		// One that a doctor has ended is in gone, and no error here.
		_, _ = c.Stop()
	}
	for _, release := range w.closers {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

// journal is what was run and should not have been.
func (w *world) journal() []string {
	data, err := os.ReadFile(w.words["JOURNAL"])
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(w.unfill(string(data))), "\n")
}

// gone lists the background programs that are gone although nobody stopped them.
func (w *world) gone() []string {
	var gone []string
	for _, c := range w.running {
		select {
		case <-c.Exited():
			gone = append(gone, "a program that ran before is gone: "+c.Said())
		default:
		}
	}
	return gone
}

// A snapshot is all that is on a machine, except caches and our own state.
type snapshot map[string]fileState

type fileState struct {
	mode  fs.FileMode
	owner uint32
	link  string
	hash  string
	text  string
}

func (w *world) snapshot() (snapshot, error) {
	s := snapshot{}
	for _, root := range []string{"home", "project", "bin"} {
		err := filepath.WalkDir(w.path(root), func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(w.dir, name)
			if err != nil {
				return err
			}
			if d.IsDir() {
				// What package managers and interpreters keep for themselves.
				if rel == "home/.npm" || rel == "home/.cache" || d.Name() == "__pycache__" {
					return fs.SkipDir
				}
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			st := fileState{mode: info.Mode(), owner: info.Sys().(*syscall.Stat_t).Uid}
			switch {
			case info.Mode()&fs.ModeSymlink != 0:
				st.link, err = os.Readlink(name)
			case info.Mode().IsRegular() && info.Size() < 4<<20:
				var data []byte
				data, err = os.ReadFile(name)
				sum := sha256.Sum256(data)
				st.hash, st.text = hex.EncodeToString(sum[:]), string(data)
			}
			s[rel] = st
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// with returns the snapshot as it would be if these files were written.
func (s snapshot) with(w *world, files []txtar.File) snapshot {
	out := snapshot{}
	for name, st := range s {
		out[name] = st
	}
	for _, f := range files {
		text := w.fill(decode(f.Data))
		sum := sha256.Sum256([]byte(text))
		name := w.fill(f.Name)
		st := out[name]
		if st.link != "" { // what it leads to is written
			name = filepath.Join(filepath.Dir(name), st.link)
			st = out[name]
		}
		if strings.TrimSpace(string(f.Data)) == "{{REMOVED}}" {
			delete(out, name)
			continue
		}
		st.hash, st.text = hex.EncodeToString(sum[:]), text
		out[name] = st
	}
	return out
}

// differences names what is not the same in two snapshots. A file that is new and
// in the wanted one has whatever mode it got.
func (s snapshot) differences(want snapshot) []string {
	var diff []string
	for name, a := range s {
		b, ok := want[name]
		switch {
		case !ok:
			diff = append(diff, name+" is new")
		case a.hash != b.hash || a.link != b.link:
			diff = append(diff, name)
		case b.mode != 0 && a.mode != b.mode:
			diff = append(diff, fmt.Sprintf("%s has mode %v instead of %v", name, a.mode, b.mode))
		case b.mode != 0 && a.owner != b.owner:
			diff = append(diff, name+" has another owner")
		}
	}
	for name := range want {
		if _, ok := s[name]; !ok {
			diff = append(diff, name+" is gone")
		}
	}
	slices.Sort(diff)
	return diff
}

// run runs a program in this world and returns all that it said.
func (w *world) run(ctx context.Context, argv ...string) (*spoken, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = w.path("project"), w.env
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	s := &spoken{argv: argv, out: out.Bytes(), errs: errs.Bytes(), took: time.Since(start)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return s, fmt.Errorf("%s: %w", strings.Join(argv[1:], " "), ctx.Err())
	case errors.As(err, &exit):
		s.exit = exit.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return s, err
	}
	return s, nil
}

// spoken is what a program said.
type spoken struct {
	argv      []string
	out, errs []byte
	exit      int
	took      time.Duration
}

func (s *spoken) text() string { return string(s.out) + string(s.errs) }
