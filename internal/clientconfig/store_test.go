package clientconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `{
  "mcpServers": {
    "a": {"command": "npx", "env": {"TOKEN": "ghp_secret"}}
  }
}
`

// aFile writes a Cursor configuration and returns a store and the file, changed
// but not saved.
func aFile(t *testing.T, data string) (*Store, *File) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "home", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, path, data)
	return &Store{Dir: filepath.Join(dir, "state")}, edited(t, path)
}

func put(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o640); err != nil {
		t.Fatal(err)
	}
}

func open(path string) *File { return Open(path, ByID("cursor"), "", ByID("cursor").Files[0]) }

func edited(t *testing.T, path string) *File {
	t.Helper()
	f, err := open(path).Set(Path{"mcpServers", "a", "command"}, "uvx")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSaveWritesAndRestoreBringsBack(t *testing.T) {
	s, f := aFile(t, sample)
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, f.Path); got != string(f.Bytes()) || !strings.Contains(got, "uvx") {
		t.Errorf("the file holds %q", got)
	}
	if before, err := s.Before(c.ID); err != nil || string(before) != sample {
		t.Errorf("kept %q, %v; want what was there", before, err)
	}
	back, err := s.Restore(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, f.Path); got != sample {
		t.Errorf("restored %q", got)
	}
	if _, err := s.Restore(t.Context(), c.ID); !errors.Is(err, ErrNoChange) {
		t.Errorf("restoring twice gives %v, want ErrNoChange", err)
	}
	if _, err := s.Restore(t.Context(), back.ID); err != nil {
		t.Errorf("undoing the undo: %v", err)
	}
	if got := content(t, f.Path); got != string(f.Bytes()) {
		t.Errorf("after undoing the undo the file holds %q", got)
	}
	history, err := s.History()
	if err != nil || len(history) != 3 || history[2].ID != c.ID || history[1].Undoes != c.ID || !history[2].Done {
		t.Errorf("history is %+v, %v; want three changes, the newest first", history, err)
	}
}

func TestSavingTheSameAgainIsNoChange(t *testing.T) {
	s, f := aFile(t, sample)
	if _, err := s.Save(t.Context(), open(f.Path)); !errors.Is(err, ErrNoChange) {
		t.Errorf("got %v, want ErrNoChange", err)
	}
	if h, _ := s.History(); len(h) != 0 {
		t.Errorf("history is %v, want none", h)
	}
}

func TestModeAndLinkStay(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes, and links need a privilege")
	}
	s, f := aFile(t, sample)
	link := filepath.Join(filepath.Dir(s.Dir), "link.json")
	if err := os.Symlink(filepath.Join("home", "mcp.json"), link); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fs.FileMode{0o600, 0o644, 0o660} {
		if err := os.Chmod(f.Path, mode); err != nil {
			t.Fatal(err)
		}
		put(t, f.Path, sample)
		if _, err := s.Save(t.Context(), edited(t, link)); err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Lstat(link); info.Mode()&fs.ModeSymlink == 0 {
			t.Error("the link has become a file")
		}
		if info, _ := os.Stat(f.Path); info.Mode().Perm() != mode {
			t.Errorf("mode is %v, want %v", info.Mode().Perm(), mode)
		}
	}
}

func TestCopiesAreForTheirOwnerAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	s, f := aFile(t, sample)
	if err := os.MkdirAll(filepath.Join(s.Dir, "backups"), 0o755); err != nil { // made by somebody careless
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(filepath.Join(s.Dir, "backups"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if strings.Contains(path, "ghp_") {
			t.Errorf("the name %s holds a value", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatChangedIsNotOverwritten(t *testing.T) {
	const other = `{"mcpServers": {"written": {"command": "by the client"}}}`
	for _, step := range []string{"", "compare", "compare again"} {
		s, f := aFile(t, sample)
		write := func() { put(t, f.Path, other) }
		if step == "" {
			write()
		}
		s.Step = func(at string) error {
			if at == step {
				write()
			}
			return nil
		}
		if _, err := s.Save(t.Context(), f); !errors.Is(err, ErrChanged) {
			t.Errorf("written before %q: got %v, want ErrChanged", step, err)
		}
		if got := content(t, f.Path); got != other {
			t.Errorf("written before %q: the file holds %q", step, got)
		}
		wantClean(t, s, f.Path)
		if h, _ := s.History(); len(h) != 0 {
			t.Errorf("history is %v, want none", h)
		}
	}
}

// wantClean looks for files that a writer left behind.
func wantClean(t *testing.T, s *Store, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "mcpmend") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
	backups, _ := os.ReadDir(s.folder(""))
	for _, e := range backups {
		if !exists(filepath.Join(s.folder(e.Name()), "change.json")) {
			t.Errorf("half a backup %s was left behind", e.Name())
		}
	}
}

func TestWhatIsNoPlainFileIsRefused(t *testing.T) {
	s, f := aFile(t, sample)
	if err := os.Chmod(f.Path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), f); !errors.Is(err, ErrRefused) {
		t.Errorf("read-only: got %v, want ErrRefused", err)
	}
	put(t, filepath.Join(filepath.Dir(f.Path), "broken.json"), "{")
	broken := open(filepath.Join(filepath.Dir(f.Path), "broken.json"))
	if _, err := s.Save(t.Context(), broken); !errors.Is(err, ErrRefused) {
		t.Errorf("unparsable: got %v, want ErrRefused", err)
	}
	link := filepath.Join(filepath.Dir(f.Path), "dangling.json")
	if err := os.Symlink("nowhere", link); err == nil {
		g, err := New(link, ByID("cursor"), "", ByID("cursor").Files[0]).Set(Path{"mcpServers", "a", "command"}, "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Save(t.Context(), g); !errors.Is(err, ErrRefused) {
			t.Errorf("dangling link: got %v, want ErrRefused", err)
		}
	}
}

// A rename would leave the other name with the old content, and nobody would know.
func TestAFileWithASecondNameIsRefused(t *testing.T) {
	s, f := aFile(t, sample)
	other := filepath.Join(filepath.Dir(f.Path), "other.json")
	if err := os.Link(f.Path, other); err != nil {
		t.Skip("this file system has no hard links")
	}
	_, err := s.Save(t.Context(), f)
	if !errors.Is(err, ErrRefused) || !strings.Contains(fmt.Sprint(err), "hard link") {
		t.Errorf("got %v, want ErrRefused with the reason", err)
	}
	if content(t, f.Path) != sample || content(t, other) != sample {
		t.Error("one of the two has changed")
	}
	wantClean(t, s, f.Path)
	// Made while we write, too.
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	s.Step = func(step string) error {
		if step == "compare again" {
			return os.Link(f.Path, other)
		}
		return nil
	}
	if _, err := s.Save(t.Context(), f); !errors.Is(err, ErrRefused) {
		t.Errorf("linked in the meantime: got %v, want ErrRefused", err)
	}
	wantClean(t, s, f.Path)
	s.Step = nil
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), f); err != nil {
		t.Errorf("with one name again: %v", err)
	}
}

func TestANewFileIsWrittenAndTakenAway(t *testing.T) {
	dir := t.TempDir()
	s := &Store{Dir: filepath.Join(dir, "state")}
	path := filepath.Join(dir, "home", ".cursor", "mcp.json")
	f, err := New(path, ByID("cursor"), "", ByID("cursor").Files[0]).Set(Path{"mcpServers", "a"}, Object{{"command", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if got := open(path).Server("a"); got == nil {
		t.Errorf("the new file holds %q", content(t, path))
	}
	if _, err := s.Save(t.Context(), f); !errors.Is(err, ErrChanged) {
		t.Errorf("creating it twice gives %v, want ErrChanged", err)
	}
	back, err := s.Restore(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if exists(path) {
		t.Error("the file is still there")
	}
	if _, err := s.Restore(t.Context(), back.ID); err != nil || content(t, path) != string(f.Bytes()) {
		t.Errorf("undoing the undo: %v", err)
	}
}

// Claude Code rewrites its file with every session, so an undo that wants the
// very same bytes would never work there.
func TestUndoSurvivesOtherChanges(t *testing.T) {
	s, f := aFile(t, sample)
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	put(t, f.Path, strings.Replace(content(t, f.Path), "{\n", "{\n  \"numStartups\": 2, // new\n", 1))
	if _, err := s.Restore(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(sample, "{\n", "{\n  \"numStartups\": 2, // new\n", 1)
	if got := content(t, f.Path); got != want {
		t.Errorf("the file holds %q, want %q", got, want)
	}
}

func TestUndoDoesNotTakeBackWhatOthersDid(t *testing.T) {
	s, f := aFile(t, sample)
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	mine := strings.Replace(content(t, f.Path), "uvx", "chosen by the user", 1)
	put(t, f.Path, mine)
	if _, err := s.Restore(t.Context(), c.ID); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	if got := content(t, f.Path); got != mine {
		t.Errorf("the file holds %q", got)
	}
}

func TestAChangeStaysDoneWhenTheFileIsChangedAgain(t *testing.T) {
	s, f := aFile(t, sample)
	if _, err := s.Save(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	put(t, f.Path, content(t, f.Path)+"\n")
	all, err := s.History()
	if err != nil || len(all) != 1 || !all[0].Done {
		t.Errorf("got %+v, %v, want one that is done", all, err)
	}
}

// Somebody else may have put a record wherever an ID could lead.
func TestIDsDoNotLeaveTheFolder(t *testing.T) {
	s, f := aFile(t, sample)
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	after := content(t, f.Path)
	for _, dir := range []string{"", "x", "backups", "backups/x/y"} {
		if err := os.CopyFS(filepath.Join(s.Dir, dir), os.DirFS(s.folder(c.ID))); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"", ".", "..", "../x", `..\x`, "x/y", "nope"} {
		if _, err := s.Restore(t.Context(), id); err == nil || content(t, f.Path) != after {
			t.Errorf("restored %q: %v", id, err)
		}
	}
}

// A record may be of another version of ours, with clients that we do not know.
func TestUndoOfAnUnknownClientTouchesOnlyWhatIsUnchanged(t *testing.T) {
	s, f := aFile(t, sample)
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(s.folder(c.ID), "change.json")
	text := content(t, record)
	if unknown := strings.Replace(text, `"`+c.Client+`"`, `"of-tomorrow"`, 1); unknown != text {
		put(t, record, unknown)
	} else {
		t.Fatalf("no client in %s", text)
	}
	mine := strings.Replace(content(t, f.Path), "{\n", "{\n  \"numStartups\": 2,\n", 1)
	put(t, f.Path, mine)
	if _, err := s.Restore(t.Context(), c.ID); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	if got := content(t, f.Path); got != mine {
		t.Errorf("the file holds %q", got)
	}
}

// Many writers at once, each adding its own server: none is lost.
func TestWritersDoNotLoseEachOther(t *testing.T) {
	s, f := aFile(t, sample)
	const writers = 12
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for {
				g, err := open(f.Path).Set(Path{"mcpServers", fmt.Sprintf("w%d", i)}, Object{{"command", "x"}})
				if err != nil {
					t.Error(err)
					return
				}
				_, err = s.Save(context.Background(), g)
				if err == nil {
					return
				}
				if !errors.Is(err, ErrChanged) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := len(open(f.Path).Servers); got != writers+1 {
		t.Errorf("%d servers are there, want %d:\n%s", got, writers+1, content(t, f.Path))
	}
	wantClean(t, s, f.Path)
}

var errStop = errors.New("stopped by the test")

func TestAFailureAtAnyStepLeavesOldOrNew(t *testing.T) {
	steps := 0
	for at := 0; ; at++ {
		s, f := aFile(t, sample)
		n := 0
		s.Step = func(string) error {
			if n++; n > at {
				return errStop
			}
			return nil
		}
		c, err := s.Save(t.Context(), f)
		if err == nil {
			break
		}
		steps++
		if !errors.Is(err, errStop) {
			t.Fatalf("step %d: %v", at, err)
		}
		wantOldOrNew(t, s, f, c.Done)
		wantClean(t, s, f.Path)
	}
	if steps < 7 {
		t.Errorf("only %d steps could be stopped at", steps)
	}
}

// wantOldOrNew looks at a file after an interrupted write.
func wantOldOrNew(t *testing.T, s *Store, f *File, mustBeNew bool) {
	t.Helper()
	s.Step = nil
	got := content(t, f.Path)
	isNew := got == string(f.Bytes())
	if !isNew && got != sample || mustBeNew && !isNew {
		t.Errorf("the file holds %q; new is %t, want new %t", got, isNew, mustBeNew)
	}
	history, err := s.History()
	if err != nil {
		t.Fatal(err)
	}
	if !isNew {
		for _, c := range history {
			if c.Done {
				t.Errorf("change %s claims to be done", c.ID)
			}
		}
		return
	}
	if len(history) != 1 || !history[0].Done {
		t.Fatalf("the new file has the history %+v", history)
	}
	if _, err := s.Restore(t.Context(), history[0].ID); err != nil || content(t, f.Path) != sample {
		t.Errorf("the change cannot be undone: %v", err)
	}
}

// A process is really killed before each step, as a power button would.
func TestBeingKilledAtAnyStepLeavesOldOrNew(t *testing.T) {
	if path := os.Getenv("CLIENTCONFIG_KILL_PATH"); path != "" {
		killedWriter(t, path)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kills, news := 0, 0
	for at := 0; ; at++ {
		s, f := aFile(t, sample)
		child := exec.Command(self, "-test.run=^TestBeingKilledAtAnyStepLeavesOldOrNew$")
		child.Env = append(os.Environ(), "CLIENTCONFIG_KILL_PATH="+f.Path, "CLIENTCONFIG_KILL_DIR="+s.Dir, "CLIENTCONFIG_KILL_AT="+strconv.Itoa(at))
		out, err := child.CombinedOutput()
		if err == nil {
			break
		}
		if bytes.Contains(out, []byte("FAIL")) {
			t.Fatalf("step %d: %s", at, out)
		}
		kills++
		if content(t, f.Path) != sample {
			news++
		}
		wantOldOrNew(t, s, f, false)
		if got := content(t, f.Path); got == sample { // the next writer cleans up
			if _, err := s.Save(t.Context(), f); err != nil {
				t.Errorf("step %d: the next write fails: %v", at, err)
			}
		}
		wantClean(t, s, f.Path)
	}
	if kills < 7 || news < 1 {
		t.Errorf("killed %d times, %d of them after the rename; want more", kills, news)
	}
}

// killedWriter is the process that dies.
func killedWriter(t *testing.T, path string) {
	at, err := strconv.Atoi(os.Getenv("CLIENTCONFIG_KILL_AT"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: os.Getenv("CLIENTCONFIG_KILL_DIR"), Step: func(string) error {
		if at--; at < 0 {
			p, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			_ = p.Kill()
			select {} // until the signal arrives
		}
		return nil
	}}
	if _, err := s.Save(t.Context(), edited(t, path)); err != nil {
		t.Fatal(err)
	}
}

func TestAChangeNamesItsServers(t *testing.T) {
	const two = `{"mcpServers": {"a": {"command": "npx"}, "b": {"command": "npx"},}}` // Cursor reads that
	set := func(path ...string) func(*File) (*File, error) {
		return func(f *File) (*File, error) { return f.Set(append(Path{"mcpServers"}, path...), "uvx") }
	}
	for _, test := range []struct {
		name, before string
		edit         func(*File) (*File, error)
		want         []string
	}{
		{"changed", two, set("b", "command"), []string{"b"}},
		{"added", two, set("c", "command"), []string{"c"}},
		{"removed", two, func(f *File) (*File, error) { return f.Remove(Path{"mcpServers", "a"}) }, []string{"a"}},
		{"the file as a whole", two, func(f *File) (*File, error) { return f.Set(Path{"other"}, 1) }, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, f := aFile(t, test.before)
			f, err := test.edit(f.Again())
			if err != nil {
				t.Fatal(err)
			}
			c, err := s.Save(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			undo, err := s.Restore(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			all, err := s.History()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range append(all, undo) {
				if diff := cmp.Diff(test.want, c.Servers); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.ID, diff)
				}
			}
		})
	}
}

// Records of older versions have no names, and are read all the same.
func TestAnOldRecordIsStillRead(t *testing.T) {
	s, f := aFile(t, sample)
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(s.folder(c.ID), "change.json")
	var fields map[string]any
	if err := json.Unmarshal([]byte(content(t, record)), &fields); err != nil {
		t.Fatal(err)
	}
	if fields["Servers"] == nil {
		t.Fatalf("the record has no names to be taken out: %v", fields)
	}
	delete(fields, "Servers")
	old, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	put(t, record, string(old))
	all, err := s.History()
	if err != nil || len(all) != 1 || all[0].ID != c.ID || all[0].Servers != nil {
		t.Fatalf("got %+v %v, want the change without names", all, err)
	}
	if _, err := s.Restore(t.Context(), c.ID); err != nil || content(t, f.Path) != sample {
		t.Errorf("undo: %v, and the file is\n%s", err, content(t, f.Path))
	}
}
