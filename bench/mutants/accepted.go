package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed accepted.txt
var acceptedText string

// parseAccepted reads which mutants may survive: the ID in a line of its own, below it,
// indented, the reason. # begins a comment.
func parseAccepted(text string) (map[string]string, error) {
	reasons := make(map[string]string)
	id := ""
	for n, line := range strings.Split(text, "\n") {
		rest := strings.TrimSpace(line)
		switch {
		case rest == "" || strings.HasPrefix(line, "#"):
		case rest == line: // not indented
			if _, twice := reasons[line]; twice {
				return nil, fmt.Errorf("accepted.txt:%d: a second time", n+1)
			}
			id = line
			reasons[id] = ""
		case id == "":
			return nil, fmt.Errorf("accepted.txt:%d: a reason without a mutant", n+1)
		default:
			reasons[id] = strings.TrimSpace(reasons[id] + " " + rest)
		}
	}
	for id, reason := range reasons {
		if reason == "" {
			return nil, fmt.Errorf("accepted.txt: no reason for %s", id)
		}
	}
	return reasons, nil
}

// outdated are accepted mutants of the looked-at files that no longer exist, or were
// killed in this run: their reasons are wrong by now.
func outdated(reasons map[string]string, all []sequence, results []result) []string {
	files, exists := make(map[string]bool), make(map[string]bool)
	for _, s := range all {
		for _, m := range s.order {
			files[m.File], exists[m.ID] = true, true
		}
	}
	killed := make(map[string]string)
	for _, r := range results {
		if r.Killed {
			killed[r.ID] = r.By
		}
	}
	var wrong []string
	for id := range reasons {
		file, _, _ := strings.Cut(id, " ")
		switch by := killed[id]; {
		case by != "":
			wrong = append(wrong, id+": killed by "+by)
		case files[file] && !exists[id]:
			wrong = append(wrong, id+": no such mutant any more")
		}
	}
	slices.Sort(wrong)
	return wrong
}
