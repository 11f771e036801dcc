package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// suite is the official conformance suite.
type suite struct {
	npm *rig.NPM
}

// server runs the server scenarios of one revision against url.
func (s suite) server(ctx context.Context, revision, url string) (outcomes, error) {
	return s.run(ctx, "server", "--url", url, "--requirements", revision)
}

// client runs the client scenarios of one revision. The suite starts command
// once for each scenario and adds the URL of its mock server.
func (s suite) client(ctx context.Context, revision, command string) (outcomes, error) {
	return s.run(ctx, "client", "--command", command, "--requirements", revision)
}

func (s suite) run(ctx context.Context, args ...string) (outcomes, error) {
	dir, err := os.MkdirTemp("", "mcpmend-conformance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	argv, err := s.npm.Argv("conformance", append(args, "--output-dir", dir)...)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = s.npm.Environ()
	text, err := cmd.CombinedOutput()
	// Status 1 only says that some check failed, and failing checks are compared too.
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return nil, fmt.Errorf("conformance %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	found, err := readResults(dir)
	if err != nil {
		return nil, fmt.Errorf("conformance %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return found, nil
}

// resultFolder is how the suite names the folder of one scenario.
var resultFolder = regexp.MustCompile(`^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// readResults collects the checks.json files under dir.
func readResults(dir string) (outcomes, error) {
	found := outcomes{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		folder, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := resultFolder.FindStringSubmatch(filepath.ToSlash(folder))
		if name == nil {
			return fmt.Errorf("result folder %q: name not understood", folder)
		}
		return found.read(name[1], path)
	})
	if err == nil && len(found) == 0 {
		err = errors.New("the suite wrote no results")
	}
	return found, err
}

func (o outcomes) read(scenario, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var checks []struct {
		ID           string
		Status       string
		ErrorMessage string
	}
	if err := json.Unmarshal(text, &checks); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range checks {
		o.add(scenario, c.ID, outcome{Status: c.Status, Text: c.ErrorMessage})
	}
	return nil
}
