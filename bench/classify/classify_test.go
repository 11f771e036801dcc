package main

import "testing"

func TestOnlySymptomsAreLeftOut(t *testing.T) {
	for text, want := range map[string]bool{
		"MCP error -32000: Connection closed":                       false,
		"McpError: MCP error -32001: Request timed out":             false,
		"TypeError: fetch failed":                                   false,
		"Could not connect to your MCP server":                      false,
		"Connection state: Error Process exited with code 1":        false,
		"TypeError: fetch failed: connect ECONNREFUSED ::1:5002":    true,
		"fetch failed: self-signed certificate":                     true,
		"Connection closed: No module named 'x'":                    true,
		"Failed to connect: HTTP 401":                               true,
		"spawn npx ENOENT":                                          true,
		"anything that is not on the list of symptoms":              true,
		"server exited (exit code=1): GITHUB_TOKEN is not set here": true,
	} {
		if got := carriesEvidence(text); got != want {
			t.Errorf("carriesEvidence(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestTheSeedRulesErrAsReported(t *testing.T) {
	// The two errors for which substrings are not enough.
	for text, want := range map[string]string{
		`Failed to parse message: "/messages/?session_id=7f7ad4150c504c3bb9b9741f1930403f"`: "auth_failed",
		"Error: connect ENOENT /var/run/docker.sock":                                        "command_not_found",
	} {
		if got := seedRules(text); got != want {
			t.Errorf("seedRules(%q) = %q, want %q", text, got, want)
		}
	}
}
