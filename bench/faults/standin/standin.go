// Package standin is a stand-in for a model's API. There is no model in it: it
// speaks the wire formats of OpenAI's chat completions and of Anthropic's
// messages as their services do, says what a script tells it to, and keeps
// everything that it was shown.
package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Name is the only model that the stand-in has.
const Name = "stand-in-1"

// Options say what the endpoint speaks and to whom.
type Options struct {
	// Provider is "openai" or "anthropic".
	Provider string
	// Key is the API key that it asks for.
	Key string
	// Plain refuses every request for a certain format of the answer, as small
	// servers on one's own machine do.
	Plain bool
	// Say answers a question. It is called by many at once.
	Say func(Question) Answer
}

// Question is one request as the model would see it.
type Question struct {
	System, User string
	// Blocks are the pieces of data quoted in User, by name.
	Blocks map[string]string
	// Loose is what stands in User and in no block.
	Loose string
	// Arguments are those of the call in question, decoded.
	Arguments map[string]any
	// Op is the op_id in them.
	Op string
	// Seen is how many questions about the same op came before.
	Seen int
	// Request is all that was received except for the key in its own header.
	Request string
}

// Answer is a model's text, or a response that no model's API would give.
type Answer struct {
	Text string
	Raw  func(w http.ResponseWriter, r *http.Request)
}

// Correction is the text of an answer with these arguments.
func Correction(args map[string]any) Answer {
	return Answer{Text: string(encode(map[string]any{"arguments": args}))}
}

// Declined is the text of a model that does not know.
var Declined = Answer{Text: `{"corrected":false,"reason":"it is not clear what was meant"}`}

// Endpoint is a running stand-in.
type Endpoint struct {
	o    Options
	http *httptest.Server

	mu        sync.Mutex
	questions []Question
	strange   []string
}

// Start listens on this machine.
func Start(o Options) *Endpoint {
	e := &Endpoint{o: o}
	mux := http.NewServeMux()
	switch o.Provider {
	case "openai":
		mux.HandleFunc("POST /v1/chat/completions", e.completions)
	case "anthropic":
		mux.HandleFunc("POST /v1/messages", e.messages)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e.odd(fmt.Errorf("%s %s", r.Method, r.URL.Path))
		http.NotFound(w, r)
	})
	e.http = httptest.NewServer(mux)
	return e
}

// URL is the base that a client of this provider is configured with.
func (e *Endpoint) URL() string {
	if e.o.Provider == "openai" {
		return e.http.URL + "/v1"
	}
	return e.http.URL
}

// Close stops listening and ends what is under way.
func (e *Endpoint) Close() {
	e.http.CloseClientConnections()
	e.http.Close()
}

// Questions are all that were asked so far.
func (e *Endpoint) Questions() []Question {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Question(nil), e.questions...)
}

// Strange lists the requests that the real service would have refused.
func (e *Endpoint) Strange() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.strange...)
}

func (e *Endpoint) odd(err error) {
	e.mu.Lock()
	e.strange = append(e.strange, err.Error())
	e.mu.Unlock()
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// completions is POST /v1/chat/completions.
func (e *Endpoint) completions(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, kind string, err error) {
		send(w, status, map[string]any{"error": map[string]any{"message": err.Error(), "type": kind, "param": nil, "code": nil}})
	}
	var body struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_tokens"`
		Format    *struct {
			Type   string `json:"type"`
			Schema struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	request, err := read(r, &body)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+e.o.Key:
		e.odd(errors.New("a wrong key"))
		refuse(http.StatusUnauthorized, "invalid_request_error", errors.New("incorrect API key provided"))
		return
	case err != nil:
	case body.Model != Name:
		err = fmt.Errorf("the model %q does not exist", body.Model)
	case len(body.Messages) != 2 || body.Messages[0].Role != "system" || body.Messages[1].Role != "user":
		err = errors.New("messages: want one of the system and one of the user")
	case body.Format != nil && body.Format.Type == "json_schema" && (body.Format.Schema.Name == "" || len(body.Format.Schema.Schema) == 0):
		err = errors.New("response_format.json_schema: missing name or schema")
	case body.Format != nil && e.o.Plain:
		refuse(http.StatusBadRequest, "invalid_request_error", errors.New("response_format is not supported"))
		return
	}
	if err != nil {
		e.odd(err)
		refuse(http.StatusBadRequest, "invalid_request_error", err)
		return
	}
	a := e.o.Say(e.note(body.Messages[0].Content, body.Messages[1].Content, request))
	if a.Raw != nil {
		a.Raw(w, r)
		return
	}
	send(w, http.StatusOK, map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1767225600, "model": Name,
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": "stop", "logprobs": nil,
			"message": map[string]any{"role": "assistant", "content": a.Text, "refusal": nil},
		}},
		"usage": map[string]any{"prompt_tokens": len(request) / 4, "completion_tokens": len(a.Text) / 4, "total_tokens": (len(request) + len(a.Text)) / 4},
	})
}

// messages is POST /v1/messages.
func (e *Endpoint) messages(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, kind string, err error) {
		send(w, status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": err.Error()}})
	}
	var body struct {
		Model     string    `json:"model"`
		System    string    `json:"system"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_tokens"`
		Tools     []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Choice struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tool_choice"`
	}
	request, err := read(r, &body)
	switch {
	case r.Header.Get("X-Api-Key") != e.o.Key:
		e.odd(errors.New("a wrong key"))
		refuse(http.StatusUnauthorized, "authentication_error", errors.New("invalid x-api-key"))
		return
	case err != nil:
	case r.Header.Get("Anthropic-Version") == "":
		err = errors.New("anthropic-version: header is required")
	case body.Model != Name:
		err = fmt.Errorf("model: %s", body.Model)
	case body.MaxTokens <= 0:
		err = errors.New("max_tokens: field required")
	case len(body.Messages) != 1 || body.Messages[0].Role != "user":
		err = errors.New("messages: want one of the user")
	case body.Choice.Type == "tool" && (len(body.Tools) != 1 || body.Tools[0].Name != body.Choice.Name || len(body.Tools[0].Schema) == 0):
		err = errors.New("tool_choice: the tool is not among the tools")
	case body.Tools != nil && e.o.Plain:
		refuse(http.StatusBadRequest, "invalid_request_error", errors.New("tools are not supported"))
		return
	}
	if err != nil {
		e.odd(err)
		refuse(http.StatusBadRequest, "invalid_request_error", err)
		return
	}
	a := e.o.Say(e.note(body.System, body.Messages[0].Content, request))
	if a.Raw != nil {
		a.Raw(w, r)
		return
	}
	content, stop := map[string]any{"type": "text", "text": a.Text}, "end_turn"
	if body.Choice.Type == "tool" && json.Valid([]byte(a.Text)) {
		content, stop = map[string]any{"type": "tool_use", "id": "toolu_1", "name": body.Choice.Name, "input": json.RawMessage(a.Text)}, "tool_use"
	}
	send(w, http.StatusOK, map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": Name,
		"content": []any{content}, "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": len(request) / 4, "output_tokens": len(a.Text) / 4},
	})
}

// read takes the body, and returns it with the headers but without the key.
func read(r *http.Request, into any) (string, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for name, values := range r.Header {
		if name != "Authorization" && name != "X-Api-Key" {
			fmt.Fprintln(&all, name, values)
		}
	}
	fmt.Fprintln(&all, r.URL)
	all.Write(body)
	return all.String(), json.Unmarshal(body, into)
}

// note keeps a question.
func (e *Endpoint) note(system, user, request string) Question {
	q := Question{System: system, User: user, Request: request}
	q.Blocks, q.Loose = blocks(user)
	json.Unmarshal([]byte(q.Blocks["arguments"]), &q.Arguments)
	q.Op, _ = q.Arguments["op_id"].(string)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, earlier := range e.questions {
		if earlier.Op == q.Op {
			q.Seen++
		}
	}
	e.questions = append(e.questions, q)
	return q
}

// blocks takes a message apart: a block begins with a line "BEGIN name boundary"
// and ends with the first line "END name boundary". The boundary is that of the
// first block, so that text inside one cannot open or close any.
func blocks(text string) (map[string]string, string) {
	found := map[string]string{}
	var loose strings.Builder
	var boundary, open string
	var body []string
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(line)
		marks := len(words) == 3 && (boundary == "" || words[2] == boundary)
		switch {
		case open == "" && marks && words[0] == "BEGIN":
			open, boundary, body = words[1], words[2], nil
		case open != "" && marks && words[0] == "END" && words[1] == open:
			found[open], open = strings.Join(body, "\n"), ""
		case open != "":
			body = append(body, line)
		default:
			loose.WriteString(line)
		}
	}
	if open != "" { // never closed
		loose.WriteString(strings.Join(body, "\n"))
	}
	return found, loose.String()
}

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(encode(v))
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only what the scripts and this file make
	}
	return b
}
