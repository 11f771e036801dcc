// Package testimony is what bench/testserver/witness writes into its journal.
package testimony

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Prefix begins the names of the variables that are written down. The others are
// those of the machine.
const Prefix = "WITNESS_"

// A Line is a start of the server, or a greeting it got.
type Line struct {
	PID    int
	Args   []string // without the program and the journal
	Env    map[string]string
	Dir    string
	Parent string // the program that started it
	// Greeting is the method of a client that introduced itself, "" for the start.
	Greeting string
}

// Read returns the lines of a journal; none if nobody has written one.
func Read(journal string) ([]Line, error) {
	text, err := os.ReadFile(journal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var lines []Line
	for raw := range strings.Lines(string(text)) {
		var line Line
		if err := json.Unmarshal([]byte(raw), &line); err != nil {
			return nil, fmt.Errorf("%s: %w", journal, err)
		}
		lines = append(lines, line)
	}
	return lines, nil
}
