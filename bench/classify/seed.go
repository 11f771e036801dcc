package main

import "strings"

// seedRules are the plain substring rules that the first design had, as a
// baseline. Nothing in mcpmend uses them.
func seedRules(text string) string {
	t := strings.ToLower(text)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(t, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("command not found", "filenotfounderror", "enoent"):
		return "command_not_found"
	case has("connection refused", "econnrefused"):
		return "connection_refused"
	case has("did not respond within", "timeouterror"):
		return "timeout"
	case has("401", "403", "authentication", "unauthorized"):
		return "auth_failed"
	case has("not set", "missing", "required") && looksLikeVariable(text):
		return "missing_env_var"
	case has("permission denied", "eacces"):
		return "permission_denied"
	}
	return "unknown"
}

func looksLikeVariable(text string) bool {
	for _, w := range chunk.FindAllString(text, -1) {
		if strings.Contains(w, "_") && w == strings.ToUpper(w) {
			return true
		}
	}
	return false
}
