package realclient

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// State is what a client says of one server.
type State string

// The states.
const (
	OK     State = "ok"     // it has connected
	Failed State = "failed" // it has tried, or has looked and complains
	// NotChecked: it knows the server and says nothing about whether it works.
	NotChecked State = "not-checked"
	// Absent: it does not list the server. The words are then those about the file or
	// the entry, if there are any.
	Absent State = "absent"
)

// A Verdict is what a client says of one server, and in which words.
type Verdict struct {
	State State
	Text  string
}

// Verdict reads the output of List, Doctor or Connect.
func (c *Client) Verdict(o Output, server string) Verdict {
	if v, ok := c.Verdicts(o)[server]; ok {
		return v
	}
	if c.ID == "codex" && o.kind == examination {
		return doctorIsSilent(o)
	}
	return Verdict{Absent, complaint(o, server)}
}

// Verdicts returns what the output says of every server in it.
func (c *Client) Verdicts(o Output) map[string]Verdict {
	switch {
	case c.ID == "claude":
		return readLines(o, claudeLine)
	case c.ID == "gemini":
		return readLines(o, geminiLine)
	case c.ID == "opencode":
		return readOpencode(o)
	case c.ID == "copilot" && o.kind == connection:
		return readCopilotEvents(o)
	case c.ID == "copilot":
		return readCopilotList(o)
	case o.kind == examination:
		return readCodexDoctor(o)
	case o.kind == connection:
		return readCodexStatus(o)
	default:
		return readCodexList(o)
	}
}

// Listed returns the names of the servers in the output of List or Connect, sorted.
func (c *Client) Listed(o Output) []string {
	return slices.Sorted(maps.Keys(c.Verdicts(o)))
}

var (
	//	good: /bin/server a b - ✔ Connected
	claudeLine = regexp.MustCompile(`^(?P<name>\S.*?): .* - (?P<mark>[^\x00-\x7f]|!) ?(?P<text>\S.*)$`)
	//	✗ bad: /nope  (stdio) - Disconnected
	geminiLine = regexp.MustCompile(`^(?P<mark>[^\x00-\x7f]|!) (?P<name>\S.*?)(?: \(from .*\))?: .* \([^()]*\) - (?P<text>\w.*)$`)
	//	●  ✓ good connected
	opencodeLine = regexp.MustCompile(`^●  (?P<mark>\S) (?P<name>\S.*?) (?P<text>connected|failed|disabled|needs .*)$`)
)

func readLines(o Output, pattern *regexp.Regexp) map[string]Verdict {
	found := make(map[string]Verdict)
	for line := range strings.Lines(plain(o.Stdout + "\n" + o.Stderr)) {
		if m := pattern.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			found[m[pattern.SubexpIndex("name")]] = judge(m[pattern.SubexpIndex("mark")], m[pattern.SubexpIndex("text")])
		}
	}
	return found
}

func judge(mark, text string) Verdict {
	switch mark {
	case "✔", "✓":
		return Verdict{OK, text}
	case "⏸", "○", "◯":
		return Verdict{NotChecked, text}
	default:
		return Verdict{Failed, text}
	}
}

// readOpencode has the reason of a failure in the lines below, the last of which is
// the command.
func readOpencode(o Output) map[string]Verdict {
	found := make(map[string]Verdict)
	var name string
	var below []string
	finish := func() {
		if v := found[name]; v.State == Failed && len(below) > 1 {
			v.Text += ": " + strings.Join(below[:len(below)-1], " ")
			found[name] = v
		}
		name, below = "", nil
	}
	for line := range strings.Lines(plain(o.Stdout)) {
		line = strings.TrimRight(line, " \r\n")
		if m := opencodeLine.FindStringSubmatch(line); m != nil {
			finish()
			name = m[2]
			found[name] = judge(m[1], m[3])
		} else if text, ok := strings.CutPrefix(line, "│      "); ok && name != "" {
			below = append(below, text)
		}
	}
	finish()
	return found
}

func readCopilotList(o Output) map[string]Verdict {
	var list struct {
		MCPServers map[string]struct{ Enabled bool }
	}
	_ = json.Unmarshal([]byte(o.Stdout), &list)
	found := make(map[string]Verdict)
	for name, s := range list.MCPServers {
		found[name] = Verdict{NotChecked, enabled(s.Enabled)}
	}
	return found
}

func readCopilotEvents(o Output) map[string]Verdict {
	found := make(map[string]Verdict)
	for line := range strings.Lines(o.Stdout) {
		var event struct {
			Type string
			Data struct {
				Servers []struct{ Name, Status, Error string }
			}
		}
		if json.Unmarshal([]byte(line), &event) != nil || event.Type != "session.mcp_servers_loaded" {
			continue
		}
		for _, s := range event.Data.Servers {
			switch s.Status {
			case "connected":
				found[s.Name] = Verdict{OK, s.Status}
			case "failed":
				found[s.Name] = Verdict{Failed, s.Status + ": " + s.Error}
			default:
				found[s.Name] = Verdict{NotChecked, s.Status}
			}
		}
	}
	return found
}

func readCodexList(o Output) map[string]Verdict {
	var list []struct {
		Name    string
		Enabled bool
	}
	_ = json.Unmarshal([]byte(o.Stdout), &list)
	found := make(map[string]Verdict)
	for _, s := range list {
		found[s.Name] = Verdict{NotChecked, enabled(s.Enabled)}
	}
	return found
}

func readCodexStatus(o Output) map[string]Verdict {
	var status struct {
		Data []struct {
			Name       string
			ServerInfo *struct{ Name string }
			ToolsError string
		}
	}
	_ = json.Unmarshal([]byte(o.Stdout), &status)
	found := make(map[string]Verdict)
	for _, s := range status.Data {
		switch {
		case s.ToolsError != "":
			found[s.Name] = Verdict{Failed, s.ToolsError}
		case s.ServerInfo != nil:
			found[s.Name] = Verdict{OK, "server info and tools"}
		default:
			found[s.Name] = Verdict{NotChecked, ""}
		}
	}
	return found
}

// codexReport is the part of `codex doctor --json` about servers.
type codexReport struct {
	Checks map[string]struct {
		Status, Summary string
		Details         map[string]any
	}
}

func readReport(o Output) (r codexReport) {
	_ = json.Unmarshal([]byte(o.Stdout), &r)
	return r
}

// readCodexDoctor finds complaints under the name of the server and, for what cannot
// be reached, in lists of "name: url (why)". Servers without one are not named.
func readCodexDoctor(o Output) map[string]Verdict {
	found := make(map[string]Verdict)
	complain := func(name, text string) {
		if v, ok := found[name]; ok {
			text = v.Text + "; " + text
		}
		found[name] = Verdict{Failed, text}
	}
	details := readReport(o).Checks["mcp.config"].Details
	for _, key := range slices.Sorted(maps.Keys(details)) {
		switch {
		case strings.HasSuffix(key, " servers"): // how many
		case strings.HasSuffix(key, "reachability") || strings.HasSuffix(key, "reachability failed"):
			for _, line := range texts(details[key]) {
				if name, text, ok := strings.Cut(line, ": "); ok {
					complain(name, text)
				}
			}
		default:
			for _, text := range texts(details[key]) {
				complain(key, text)
			}
		}
	}
	return found
}

// doctorIsSilent is for a server that codex doctor does not name.
func doctorIsSilent(o Output) Verdict {
	r := readReport(o)
	if load := r.Checks["config.load"]; load.Status == "fail" {
		return Verdict{Absent, load.Summary}
	}
	if _, ok := r.Checks["mcp.config"]; !ok {
		return Verdict{Absent, complaint(o, "")}
	}
	return Verdict{NotChecked, "no complaint"}
}

func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, texts(e)...)
		}
		return all
	}
	return nil
}

func enabled(yes bool) string {
	if yes {
		return "enabled"
	}
	return "disabled"
}

// complaint is the line of the output that has to do with a server that is not
// listed: one with its name, else the first that speaks of an error.
func complaint(o Output, server string) string {
	if o.TimedOut {
		return "no answer within the time"
	}
	if o.Err != nil {
		return o.Err.Error()
	}
	if o.kind == connection {
		return "" // a log of everything; what it says of an entry is in the verdicts
	}
	first := ""
	for line := range strings.Lines(plain(o.Stderr + "\n" + o.Stdout)) {
		if strings.HasPrefix(line, "│") || claudeLine.MatchString(strings.TrimSpace(line)) {
			continue // it is about a server that is listed
		}
		line = strings.TrimLeft(strings.TrimSpace(line), "├└↳ ")
		lower := strings.ToLower(line)
		bad := slices.ContainsFunc([]string{"error", "invalid", "skipped", "corrupted", "expected", "not valid"}, func(w string) bool { return strings.Contains(lower, w) })
		switch {
		case server != "" && bad && strings.Contains(line, server):
			return line
		case bad && first == "":
			first = line
		}
	}
	return first
}

var escape = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// plain is text without colours, which opencode writes even with NO_COLOR.
func plain(text string) string { return escape.ReplaceAllString(text, "") }
