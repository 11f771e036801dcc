package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// Tests of a mutant may take this many times as long as those of the tree, and a
	// minute at least: one that takes longer hangs.
	patience     = 6
	leastTimeout = time.Minute
	// maxMemory stops a mutant that would eat the machine.
	maxMemory = 2 << 30
)

// A judge builds and runs tests, of the tree or of mutants.
type judge struct {
	root    string
	dir     string   // everything temporary is below
	confine []string // command that keeps signals of a mutant away from everything else
	env     []string
	mutex   sync.Mutex
	limits  map[string]time.Duration // by stage; guarded by mutex
	tree    *bed                     // with all mutants behind switches, none of them on
	numbers map[string]int           // of those, by ID
	opened  atomic.Int64
}

func newJudge(ctx context.Context, root, dir string) (*judge, error) {
	j := &judge{root: root, dir: dir, limits: make(map[string]time.Duration)}
	for _, argv := range [][]string{
		{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"},
		{"unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--mount-proc"},
	} {
		if exec.CommandContext(ctx, argv[0], append(argv[1:], "true")...).Run() == nil {
			// The shell reaps what tests leave behind, as the first process has to.
			j.confine = append(argv, "sh", "-c", `"$@"; exit $?`, "sh")
			break
		}
	}
	if j.confine == nil {
		return nil, errors.New("unshare cannot make a PID namespace here, and a mutant outside of one may kill anything")
	}
	// A mutant may write anywhere below the home folder, so it gets another one.
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	j.env = append(os.Environ(), "HOME="+home)
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.CommandContext(ctx, "go", "env", name).Output()
		if err != nil {
			return nil, fmt.Errorf("go env: %w", err)
		}
		j.env = append(j.env, name+"="+strings.TrimSpace(string(value)))
	}
	return j, nil
}

// limit is how long a stage may take. When it is first asked for, the tests are run with no
// mutant on, and have to pass.
func (j *judge) limit(ctx context.Context, s stage) (time.Duration, error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if known := j.limits[s.name()]; known > 0 {
		return known, nil
	}
	began := time.Now()
	text, err := j.tree.run(ctx, s, 20*time.Minute)
	if err != nil {
		return 0, fmt.Errorf("the tests fail without any mutant: %s: %w\n%s", s.name(), err, lastLines(text))
	}
	took := time.Since(began)
	j.limits[s.name()] = max(leastTimeout, patience*took)
	fmt.Fprintf(os.Stderr, "without a mutant %s takes %.1f s\n", s.name(), took.Seconds())
	return j.limits[s.name()], nil
}

// A result is what became of a mutant.
type result struct {
	mutant
	Group    string  `json:"group"`
	Compiles bool    `json:"compiles"`
	Killed   bool    `json:"killed"`
	By       string  `json:"by,omitempty"`     // the test, or what else stopped it
	Reason   string  `json:"reason,omitempty"` // why it may survive
	Seconds  float64 `json:"seconds"`
}

// try runs the stages until one notices the mutant.
func (j *judge) try(ctx context.Context, group string, m mutant, stages []stage) (r result, err error) {
	r = result{mutant: m, Group: group}
	began := time.Now()
	defer func() { r.Seconds = time.Since(began).Seconds() }()
	b, err := j.open(m)
	if err != nil {
		return r, err
	}
	defer b.close()
	for i, s := range stages {
		text, err := b.build(ctx, s.pkg)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil && i == 0 {
			return r, nil // it does not compile
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w\n%s", m.ID, err, text)
		}
		r.Compiles = true
		limit, err := j.limit(ctx, s)
		if err != nil {
			return r, err
		}
		r.Killed, r.By = b.kills(ctx, s, limit)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if r.Killed {
			return r, nil
		}
	}
	return r, nil
}

// kills runs a stage. A busy machine makes tests fail, too, so a test counts only if it
// fails again, alone, and passes in the same place without the mutant, far below the limit.
// What stays unsure after three rounds has not killed it.
func (b *bed) kills(ctx context.Context, s stage, limit time.Duration) (killed bool, by string) {
	off := *b.tree
	off.dir = b.dir
	for range 3 {
		text, err := b.run(ctx, s, limit)
		if err == nil || ctx.Err() != nil {
			return false, ""
		}
		test, hangs := killer(text)
		for _, alone := range s.alone(test) {
			began := time.Now()
			if _, err := off.run(ctx, alone, limit); err != nil || time.Since(began) > limit/2 {
				continue
			}
			if hangs {
				return true, "time-out of " + test
			}
			if _, err := b.run(ctx, alone, limit); err != nil && ctx.Err() == nil {
				return true, cmp.Or(test, shorten(err.Error()+": "+lastLines(text)))
			}
		}
	}
	return false, ""
}

// alone are stages of that test and nothing else: the subtest, and the whole test for the case
// that it wants to see all its parts.
func (s stage) alone(test string) []stage {
	if test == "" {
		return []stage{s}
	}
	whole, _, isPart := strings.Cut(test, "/")
	stages := []stage{{pkg: s.pkg, run: exactly(whole)}}
	if isPart {
		stages = append([]stage{{pkg: s.pkg, run: exactly(test)}}, stages...)
	}
	return stages
}

func exactly(test string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(test), "/", "$/^") + "$"
}

// A bed is where the tests of one mutant are built and run.
type bed struct {
	*judge
	dir      string
	programs string // folder of what was built
	overlay  string
	built    map[string]bool
	number   int // of the mutant that is switched on
}

func (j *judge) open(m mutant) (*bed, error) {
	// Not a name that looks random, which our own redaction would hide.
	b := &bed{judge: j, dir: filepath.Join(j.dir, "mutant"+strconv.FormatInt(j.opened.Add(1), 10)), built: make(map[string]bool)}
	b.programs = b.dir
	if err := os.MkdirAll(filepath.Join(b.dir, "tmp"), 0o700); err != nil {
		return nil, err
	}
	if n := j.numbers[m.ID]; n > 0 {
		b.number, b.programs, b.overlay, b.built = n, j.tree.programs, j.tree.overlay, j.tree.built
		return b, nil
	}
	original := filepath.Join(j.root, filepath.FromSlash(m.File))
	src, err := os.ReadFile(original)
	if err != nil {
		return nil, err
	}
	changed := filepath.Join(b.dir, "mutant.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return nil, err
	}
	b.overlay = filepath.Join(b.dir, "overlay.json")
	return b, errors.Join(os.WriteFile(changed, m.apply(src), 0o600), os.WriteFile(b.overlay, overlay, 0o600))
}

func (b *bed) close() {
	// Tests make folders that cannot be written.
	_ = filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(b.dir) // at the end the whole folder goes anyway
}

func (b *bed) program(pkg string) string {
	return filepath.Join(b.programs, strings.ReplaceAll(pkg, "/", "-")+".test")
}

func (b *bed) build(ctx context.Context, pkg string) ([]byte, error) {
	if b.built[pkg] {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", b.program(pkg), "-overlay", b.overlay, "./"+pkg)
	cmd.Dir = b.root
	text, err := cmd.CombinedOutput()
	b.built[pkg] = err == nil
	return text, err
}

// errTooLarge is a mutant that eats memory.
var errTooLarge = errors.New("out of memory")

func (b *bed) run(ctx context.Context, s stage, limit time.Duration) ([]byte, error) {
	argv := append(append([]string{}, b.confine...), b.program(s.pkg), "-test.failfast", "-test.timeout="+limit.String())
	if s.run != "" {
		argv = append(argv, "-test.run="+s.run)
	}
	if s.skip != "" {
		argv = append(argv, "-test.skip="+s.skip)
	}
	// The limit of the tests themselves names the one that hangs; this one is for a
	// mutant that hangs too deeply.
	ctx, stop := context.WithTimeoutCause(ctx, limit+15*time.Second, context.DeadlineExceeded)
	defer stop()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(s.pkg))
	cmd.Env = append(append([]string{}, b.env...), "TMPDIR="+filepath.Join(b.dir, "tmp"), switchVariable+"="+strconv.Itoa(b.number))
	// For tests that build programs of ours.
	cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+b.overlay))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	large := make(chan bool, 1)
	go func() { large <- watch(cmd, done) }()
	err := cmd.Wait()
	close(done)
	if <-large {
		err = errTooLarge
	}
	return out.Bytes(), err
}

// watch kills the command if the processes below it hold too much memory.
func watch(cmd *exec.Cmd, done <-chan struct{}) bool {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return false
		case <-tick.C:
			if memory(cmd.Process.Pid, 3) > maxMemory {
				_ = cmd.Process.Kill() // unless it has just gone
				return true
			}
		}
	}
}

// memory is what a process and those below it hold: unshare, the shell, the tests.
func memory(pid, depth int) (bytes int) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if statm, err := os.ReadFile(filepath.Join(proc, "statm")); err == nil {
		if fields := strings.Fields(string(statm)); len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1])
			bytes = pages * os.Getpagesize()
		}
	}
	if depth == 0 {
		return bytes
	}
	threads, _ := filepath.Glob(filepath.Join(proc, "task", "*", "children"))
	for _, file := range threads {
		children, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				bytes += memory(n, depth-1)
			}
		}
	}
	return bytes
}

var (
	failedTest  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	hangingTest = regexp.MustCompile(`(?m)^panic: test timed out after .*\n(?:\s*running tests:\n\s*(\S+))?`)
)

// killer is the test that has noticed a mutant, with its subtest; "" if the output names none.
func killer(text []byte) (test string, hangs bool) {
	if m := hangingTest.FindSubmatch(text); m != nil {
		test, _, _ = strings.Cut(string(m[1]), "/")
		return test, true
	}
	for _, m := range failedTest.FindAllSubmatch(text, -1) {
		if name := string(m[1]); test == "" || strings.HasPrefix(name, test+"/") {
			test = name
		}
	}
	return test, false
}

func lastLines(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
