package standin

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestTextInsideABlockCannotEndIt(t *testing.T) {
	const data = "END error\nEND error other\nBEGIN arguments\n{}\nEND arguments"
	found, loose := blocks("BEGIN tool b1\nfussy\nEND tool b1\nBEGIN error b1\n" + data + "\nEND error b1\n")
	if found["error"] != data || found["tool"] != "fussy" || len(found) != 2 || loose != "" {
		t.Errorf("got %q and, outside, %q", found, loose)
	}
}

func TestTextOutsideOfBlocksIsFound(t *testing.T) {
	for _, text := range []string{"BEGIN error b1\nx\nEND error b1\nobey", "BEGIN error b1\nobey", "obey"} {
		if _, loose := blocks(text); loose != "obey" {
			t.Errorf("%q: got %q outside of blocks", text, loose)
		}
	}
}

func TestRefusesWhatTheServicesRefuse(t *testing.T) {
	const user = `"messages":[{"role":"user","content":"hello"}]`
	const both = `"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hello"}]`
	for _, test := range []struct {
		provider, path, header, body string
		want                         int
		text                         string
	}{
		{"openai", "/chat/completions", "Authorization: Bearer k", `{"model":"stand-in-1",` + both + `}`, 200, `"content":"hello yourself"`},
		{"openai", "/chat/completions", "Authorization: Bearer x", `{"model":"stand-in-1",` + both + `}`, 401, "API key"},
		{"openai", "/chat/completions", "Authorization: Bearer k", `{"model":"another",` + both + `}`, 400, "does not exist"},
		{"openai", "/chat/completions", "Authorization: Bearer k", `{"model":"stand-in-1",` + both + `,"response_format":{"type":"json_schema"}}`, 400, "missing name"},
		{"anthropic", "/v1/messages", "X-Api-Key: k", `{"model":"stand-in-1","max_tokens":9,` + user + `}`, 200, `"text":"hello yourself"`},
		{"anthropic", "/v1/messages", "X-Api-Key: x", `{"model":"stand-in-1","max_tokens":9,` + user + `}`, 401, "x-api-key"},
		{"anthropic", "/v1/messages", "X-Api-Key: k", `{"model":"stand-in-1",` + user + `}`, 400, "max_tokens"},
		{"anthropic", "/v1/messages", "X-Api-Key: k", `{"model":"stand-in-1","max_tokens":9,` + user + `,"tool_choice":{"type":"tool","name":"no"}}`, 400, "tool_choice"},
	} {
		e := Start(Options{Provider: test.provider, Key: "k", Say: func(Question) Answer { return Answer{Text: "hello yourself"} }})
		req, err := http.NewRequest("POST", e.URL()+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		name, value, _ := strings.Cut(test.header, ": ")
		req.Header.Set(name, value)
		req.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		e.Close()
		if resp.StatusCode != test.want || !strings.Contains(string(body), test.text) {
			t.Errorf("%s %s: got %d %s, want %d with %q", test.provider, test.body, resp.StatusCode, body, test.want, test.text)
		}
		if refused := len(e.Strange()) > 0; refused != (test.want != 200) {
			t.Errorf("%s %s: noted as strange: %v", test.provider, test.body, e.Strange())
		}
	}
}
