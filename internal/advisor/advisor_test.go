package advisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/fault"
)

// model is a stand-in for a model's API: it speaks the wire formats of OpenAI's
// chat completions and Anthropic's messages, and says what the test tells it to.
type model struct {
	t testing.TB
	*httptest.Server
	// says returns the model's text for a request. forms it does not take are
	// refused as real servers refuse them.
	says  func(request) string
	takes []string // names of response formats; nil means all
	raw   http.HandlerFunc

	mu       sync.Mutex
	requests []request
}

// request is what the tests look at, of both formats.
type request struct {
	Path           string      `json:"-"`
	Header         http.Header `json:"-"`
	Body           string      `json:"-"`
	Model          string
	System         string
	Messages       []message
	ResponseFormat *struct {
		Type       string
		JSONSchema struct {
			Name   string
			Schema json.RawMessage
		} `json:"json_schema"`
	} `json:"response_format"`
	ToolChoice *struct{ Type, Name string } `json:"tool_choice"`
}

func (r request) form() string {
	switch {
	case r.ResponseFormat != nil:
		return r.ResponseFormat.Type
	case r.ToolChoice != nil:
		return "tool"
	}
	return "plain"
}

func newModel(t testing.TB, says string) *model {
	m := &model{t: t, says: func(request) string { return says }}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.t.Error(err)
	}
	req := request{Path: r.URL.Path, Header: r.Header, Body: string(body)}
	if err := json.Unmarshal(body, &req); err != nil {
		m.t.Errorf("the request is not JSON: %v", err)
	}
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	if m.raw != nil {
		m.raw(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if m.takes != nil && !strings.Contains(strings.Join(m.takes, " "), req.form()) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"'response_format.type' must be one of %s"}`, strings.Join(m.takes, ", "))
		return
	}
	says := m.says(req)
	quoted, _ := json.Marshal(says)
	switch {
	case r.URL.Path == "/v1/chat/completions":
		fmt.Fprintf(w, `{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s,"refusal":null},"finish_reason":"stop"}],"usage":{"total_tokens":9}}`, quoted)
	case r.URL.Path == "/v1/messages" && req.form() == "tool":
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"answer","input":%s}],"stop_reason":"tool_use"}`, says)
	case r.URL.Path == "/v1/messages":
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s}],"stop_reason":"end_turn"}`, quoted)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (m *model) seen() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

func (m *model) advisor(o Options) *Advisor {
	m.t.Helper()
	if o.BaseURL = m.URL; o.Provider != Anthropic {
		o.BaseURL += "/v1"
	}
	if o.Model == "" {
		o.Model = "small"
	}
	a, err := New(o)
	if err != nil {
		m.t.Fatal(err)
	}
	return a
}

// question is about a state that is misspelled.
func question(args string) Question {
	return Question{
		Tool:       "list_issues",
		SchemaPart: []byte(`{"properties":{"state":{"enum":["open","closed"]}}}`),
		Arguments:  []byte(args),
		Error:      `state: got "opne", need one of "open","closed"`,
		Kind:       fault.InvalidArguments,
		Valid:      func([]byte) error { return nil },
	}
}

const (
	opne = `{"state":"opne","limit":9007199254740993}`
	open = `{"limit":9007199254740993,"state":"open"}`
)

func TestAGoodAnswerIsTaken(t *testing.T) {
	for _, provider := range []Provider{OpenAI, Anthropic} {
		t.Run(string(provider), func(t *testing.T) {
			m := newModel(t, `{"arguments":`+open+`}`)
			got, err := m.advisor(Options{Provider: provider, Key: "k-123456"}).Correct(t.Context(), question(opne))
			if err != nil {
				t.Fatal(err)
			}
			want := Answer{Corrected: true, Arguments: []byte(open), Changed: []string{"/state"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			r := m.seen()[0]
			if r.Model != "small" {
				t.Errorf("asked model %q, want small", r.Model)
			}
			switch provider {
			case OpenAI:
				if r.Header.Get("Authorization") != "Bearer k-123456" || r.form() != "json_schema" || !json.Valid(r.ResponseFormat.JSONSchema.Schema) {
					t.Errorf("request: form %s, authorization %q", r.form(), r.Header.Get("Authorization"))
				}
			case Anthropic:
				if r.Header.Get("X-Api-Key") != "k-123456" || r.Header.Get("Anthropic-Version") == "" || r.form() != "tool" || r.System == "" {
					t.Errorf("request: form %s, headers %v", r.form(), r.Header)
				}
			}
		})
	}
}

func TestTheAnswerIsFoundInWhatServersPutAroundIt(t *testing.T) {
	object := `{"arguments":` + open + `}`
	for _, text := range []string{
		"```json\n" + object + "\n```",
		"Here you are:\n\n" + object + "\n\nI corrected the state.",
		"<think>the user wants {\"state\": ...} hm</think>\n" + object,
		`{"corrected":true,"reason":"typo","arguments":` + open + `}`,
		`{"tool":"list_issues","arguments":` + open + `}`,
	} {
		got, err := newModel(t, text).advisor(Options{}).Correct(t.Context(), question(opne))
		if err != nil || string(got.Arguments) != open {
			t.Errorf("%s:\ngot %s, %v", text, got.Arguments, err)
		}
	}
}

func TestADeclinedQuestionIsNoError(t *testing.T) {
	for text, want := range map[string]Answer{
		`{"corrected":false,"reason":"could be \u001b[31mopen\nor closed"}`: {Reason: "could be [31mopen or closed"},
		`{"corrected":false,"arguments":` + open + `}`:                      {},
		`{"arguments":` + opne + `}`:                                        {Reason: "the model changed nothing"},
		`{"corrected":false,"reason":"` + strings.Repeat("a ", 500) + `"}`:  {Reason: strings.Repeat("a ", 100) + "…"},
	} {
		got, err := newModel(t, text).advisor(Options{}).Correct(t.Context(), question(opne))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestAModelThatRefusesHasDeclined(t *testing.T) {
	for provider, body := range map[Provider]string{
		OpenAI:    `{"choices":[{"message":{"role":"assistant","content":null,"refusal":"I can't"},"finish_reason":"stop"}]}`,
		Anthropic: `{"type":"message","content":[],"stop_reason":"refusal"}`,
	} {
		m := newModel(t, "")
		m.raw = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
		got, err := m.advisor(Options{Provider: provider}).Correct(t.Context(), question(opne))
		if err != nil || got.Corrected || got.Reason == "" {
			t.Errorf("%s: got %+v, %v, want a reason", provider, got, err)
		}
	}
}

func TestWhatIsNoAnswerIsAFault(t *testing.T) {
	for _, text := range []string{
		"", "I do not know.", "{", `{"arguments":`, `[1]`, `{"arguments":[1]}`, `{"arguments":"{}"}`, `{}`, `null`,
		`{"state":"open"}`,                      // arguments without their envelope may be anything
		`{"arguments":{}} {"arguments":{}}`,     // which one?
		`{"arguments":{"state":"a"},"extra":1}`, // not what was asked for
		`{"arguments":{"state":"open","state":"closed"}}`,
		`{"arguments":{"state":"\ud800"}}`,
		`{"arguments":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}`,
		`{"arguments":{"state":"` + strings.Repeat("x", maxReply) + `"}}`,
		strings.Repeat("x", maxBody),
	} {
		got, err := newModel(t, text).advisor(Options{}).Correct(t.Context(), question(opne))
		var flt *fault.Fault
		if !errors.As(err, &flt) || got.Corrected {
			t.Errorf("%.60s: got %+v, %v, want a fault", text, got, err)
		} else if len(err.Error()) > 400 || strings.Contains(err.Error(), "xxxx") {
			t.Errorf("%.60s: the error quotes the answer: %v", text, err)
		}
	}
}

func TestHTTPTroubleIsNamed(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		want   fault.Kind
	}{
		{401, `{"error":{"message":"Incorrect API key provided: sk-canary-0123456789abcdef.","type":"invalid_request_error"}}`, fault.AuthFailed},
		{429, `{"error":{"message":"Rate limit reached"}}`, fault.RateLimited},
		{500, `oops`, ""},
		{302, ``, ""},
		{400, `{"error":"model \"small\" not found"}`, ""},
		{200, `<html>`, ""},
		{200, `{"choices":[]}`, ""},
		{200, `{"choices":[{"message":{"content":"{\"arguments\":{\"state\":\"open\"}}"},"finish_reason":"length"}]}`, ""},
	} {
		m := newModel(t, "")
		m.raw = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		}
		_, err := m.advisor(Options{Key: "sk-canary-0123456789abcdef"}).Correct(t.Context(), question(opne))
		var flt *fault.Fault
		if !errors.As(err, &flt) || tc.want != "" && flt.Kind != tc.want {
			t.Errorf("%d %s: got %v, want %s", tc.status, tc.body, err, tc.want)
			continue
		}
		if printed := fmt.Sprintf("%v %+v", err, flt); strings.Contains(printed, "canary") {
			t.Errorf("%d %s: the key is in the error: %s", tc.status, tc.body, printed)
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := newModel(t, `{"arguments":`+open+`}`)
	m := newModel(t, "")
	m.raw = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/v1/chat/completions", http.StatusTemporaryRedirect)
	}
	got, err := m.advisor(Options{Key: "k-123456"}).Correct(t.Context(), question(opne))
	if err == nil || got.Corrected || len(elsewhere.seen()) != 0 {
		t.Errorf("got %+v, %v, and %d requests elsewhere", got, err, len(elsewhere.seen()))
	}
}

func TestABodyWithoutEndIsNotRead(t *testing.T) {
	m := newModel(t, "")
	m.raw = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"{\"corrected\":false}"}}],"padding":"`)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	}
	if _, err := m.advisor(Options{}).Correct(t.Context(), question(opne)); kindOf(err) != fault.MessageTooLarge {
		t.Errorf("got %v, want message_too_large", err)
	}
}

func TestARefusedConnectionCostsNoTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	a, err := New(Options{BaseURL: "http://" + l.Addr().String() + "/v1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = a.Correct(t.Context(), question(opne))
	var flt *fault.Fault
	if !errors.As(err, &flt) || flt.Kind != fault.ConnectionRefused {
		t.Errorf("got %v, want connection_refused", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestASlowModelIsLeft(t *testing.T) {
	m := newModel(t, "")
	gone := make(chan struct{})
	m.raw = func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	}
	_, err := m.advisor(Options{Timeout: 30 * time.Millisecond}).Correct(t.Context(), question(opne))
	var flt *fault.Fault
	if !errors.As(err, &flt) || flt.Kind != fault.Timeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
	<-gone // the request does not go on without us
}

func TestTheFormThatAServerTakesIsRemembered(t *testing.T) {
	for _, tc := range []struct {
		provider Provider
		takes    []string
		want     []string // the forms of two questions
	}{
		{OpenAI, []string{"json_schema", "text"}, []string{"json_schema", "json_schema"}},
		{OpenAI, []string{"json_object"}, []string{"json_schema", "json_object", "json_object"}},
		{OpenAI, []string{"plain"}, []string{"json_schema", "json_object", "plain", "plain"}},
		{OpenAI, []string{"nothing"}, []string{"json_schema", "json_object", "plain", "json_schema", "json_object", "plain"}},
		{Anthropic, []string{"plain"}, []string{"tool", "plain", "plain"}},
	} {
		m := newModel(t, `{"arguments":`+open+`}`)
		m.takes = tc.takes
		a := m.advisor(Options{Provider: tc.provider})
		for range 2 {
			_, err := a.Correct(t.Context(), question(opne))
			if (err != nil) != (tc.takes[0] == "nothing") {
				t.Errorf("%s %v: %v", tc.provider, tc.takes, err)
			}
		}
		var got []string
		for _, r := range m.seen() {
			got = append(got, r.form())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", tc.provider, tc.takes, diff)
		}
	}
}

func TestAMaliciousCorrectionIsRejected(t *testing.T) {
	const before = `{"state":"opne","title":"x","to":"a@example.com","path":"docs/a.md","amount":5,"rows":[{"n":1}],"dry_run":true,"note":null}`
	with := func(from, to string) string {
		after := strings.Replace(strings.Replace(before, "opne", "open", 1), from, to, 1)
		if from != "" && !strings.Contains(before, from) {
			t.Fatalf("%s is not there", from)
		}
		return `{"arguments":` + after + `}`
	}
	declared := map[string]bool{"/state": true, "/title": true, "/path": true, "/body": true, "/rows/0/n": true, "/rows/0/userId": true, "/cc": true}
	q := question(before)
	q.MayAdd = func(pointer string) bool { return declared[pointer] }
	q.MayChange = func(pointer string) bool { return pointer != "/rows/0/n" }
	q.Sensitive = func(pointer string) bool { return pointer == "/title" }
	for name, text := range map[string]string{
		"path":                with(`docs/a.md`, `../../etc/passwd`),
		"recipient":           with(`a@example.com`, `evil@example.com`),
		"second recipient":    with(`"a@example.com"`, `["a@example.com","evil@example.com"]`),
		"new recipient":       with(`{"state"`, `{"cc":"evil@example.com","state"`),
		"amount":              with(`"amount":5`, `"amount":500`),
		"extra key":           with(`{"state"`, `{"verbose":true,"state"`),
		"extra key inside":    with(`{"n":1}`, `{"n":1,"x":true}`),
		"declared and tricky": with(`{"state"`, `{"body":"see ../../etc/passwd","state"`),
		"shell":               with(`{"state"`, `{"body":"x; rm -rf .","state"`),
		"URL":                 with(`{"state"`, `{"body":"http://evil.example","state"`),
		"identifier":          with(`{"n":1}`, `{"n":1,"userId":7}`),
		"marked by the user":  with(`"title":"x"`, `"title":"y"`),
		"where all was well":  with(`{"n":1}`, `{"n":2}`),
		"no longer dry":       with(`,"dry_run":true`, ``),
		"something dropped":   with(`,"rows":[{"n":1}]`, ``),
		"other tool":          `{"tool":"delete_repo",` + with("", "")[1:],
		"other tool inside":   `{"arguments":{"name":"delete_repo","arguments":{}}}`,
		"prototype":           with(`{"state"`, `{"__proto__":{"admin":true},"state"`),
	} {
		got, err := newModel(t, text).advisor(Options{}).Correct(t.Context(), q)
		if !errors.Is(err, ErrRejected) || got.Corrected || got.Arguments != nil {
			t.Errorf("%s: got %s, %v, want a rejection", name, got.Arguments, err)
		}
	}
	// The same question with an honest answer is taken, and so is a null left out.
	for name, text := range map[string]string{"honest": with("", ""), "null": with(`,"note":null`, "")} {
		if got, err := newModel(t, text).advisor(Options{}).Correct(t.Context(), q); err != nil || !got.Corrected {
			t.Errorf("%s: got %+v, %v, want a correction", name, got, err)
		}
	}
}

func TestWhatTheSchemaRejectsIsRejected(t *testing.T) {
	q := question(opne)
	q.Valid = func(args []byte) error { return fmt.Errorf("no good: %s", args) }
	_, err := newModel(t, `{"arguments":`+open+`}`).advisor(Options{}).Correct(t.Context(), q)
	if !errors.Is(err, ErrRejected) || strings.Contains(err.Error(), "9007199254740993") {
		t.Errorf("got %v, want a rejection that does not quote the arguments", err)
	}
}

func TestNoModelIsAskedWithoutNeed(t *testing.T) {
	m := newModel(t, `{"arguments":`+open+`}`)
	a := m.advisor(Options{})
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		change func(*Question)
	}{
		"nobody to validate":  {t.Context(), func(q *Question) { q.Valid = nil }},
		"sign-in":             {t.Context(), func(q *Question) { q.Kind = fault.AuthFailed }},
		"permission":          {t.Context(), func(q *Question) { q.Kind = fault.PermissionDenied }},
		"no tool":             {t.Context(), func(q *Question) { q.Tool = "" }},
		"truncated arguments": {t.Context(), func(q *Question) { q.Arguments = []byte(`{"state":"op`) }},
		"no object":           {t.Context(), func(q *Question) { q.Arguments = []byte(`"open"`) }},
		"a key twice":         {t.Context(), func(q *Question) { q.Arguments = []byte(`{"a":1,"a":2}`) }},
		"long arguments":      {t.Context(), func(q *Question) { q.Arguments = []byte(`{"a":"` + strings.Repeat("x", maxArguments) + `"}`) }},
		"a long schema":       {t.Context(), func(q *Question) { q.SchemaPart = make([]byte, maxSchema+1) }},
		"the caller is gone":  {done, func(*Question) {}},
	} {
		q := question(opne)
		tc.change(&q)
		if _, err := a.Correct(tc.ctx, q); !errors.Is(err, ErrNotAsked) {
			t.Errorf("%s: got %v, want ErrNotAsked", name, err)
		}
	}
	if n := len(m.seen()); n != 0 {
		t.Errorf("the model got %d requests", n)
	}
}

func TestOptionsThatCannotWorkAreRejected(t *testing.T) {
	sample := func(context.Context, string) (string, error) { return "", nil }
	for name, o := range map[string]Options{
		"nothing":                 {},
		"no key for OpenAI":       {Model: "m"},
		"no model":                {Key: "k"},
		"unknown provider":        {Provider: "oracle", Model: "m", Key: "k"},
		"sampling without a func": {Provider: Sampling},
		"local sampling":          {Sample: sample, Local: true},
		"too long a timeout":      {Sample: sample, Timeout: 11 * time.Second},
		"negative budget":         {Sample: sample, MaxPerHour: -1},
		"key over plain HTTP":     {BaseURL: "http://models.example/v1", Model: "m", Key: "canary"},
		"key in the URL":          {BaseURL: "https://u:canary@models.example/v1", Model: "m"},
		"key in the query":        {BaseURL: "https://models.example/v1?key=canary", Model: "m"},
		"no URL":                  {BaseURL: "models.example", Model: "m"},
		"broken URL":              {BaseURL: "https://canary:x/%zz", Model: "m"},
	} {
		a, err := New(o)
		if err == nil || a != nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the secret is in the error: %v", name, err)
		}
	}
	for name, o := range map[string]Options{
		"sampling":    {Sample: sample},
		"OpenAI":      {Model: "m", Key: "k"},
		"Anthropic":   {Provider: Anthropic, Model: "m", Key: "k"},
		"Ollama":      {BaseURL: "http://localhost:11434/v1", Model: "m"},
		"own machine": {BaseURL: "http://127.0.0.1:8000/v1", Model: "m", Key: "k"},
	} {
		if _, err := New(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLocalIsCheckedWhereTheConnectionGoes(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "10.0.0.7:80": true, "192.168.1.1:80": true, "[fd00::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		"8.8.8.8:443": false, "169.254.169.254:80": false, "[2001:db8::1]:443": false, "[::ffff:8.8.8.8]:443": false, "nonsense": false,
	} {
		if got := nearby("tcp", address, nil) == nil; got != want {
			t.Errorf("nearby(%s) = %v, want %v", address, got, want)
		}
	}
	m := newModel(t, `{"arguments":`+open+`}`)
	if got, err := m.advisor(Options{Local: true}).Correct(t.Context(), question(opne)); err != nil || !got.Corrected {
		t.Errorf("a model on this machine: %+v, %v", got, err)
	}
	a, err := New(Options{BaseURL: "http://192.0.2.1/v1", Model: "m", Local: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Correct(t.Context(), question(opne)); err == nil || !strings.Contains(err.Error(), "private network") {
		t.Errorf("a model elsewhere: got %v", err)
	}
}

func TestTheKeyIsNeverPrinted(t *testing.T) {
	o := Options{Model: "m", Key: "canary-key"}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(struct{ Key Secret }{o.Key})
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{
		fmt.Sprintf("%v %+v %#v %s %q %x", o.Key, o, o, o.Key, o.Key, o.Key), fmt.Sprintf("%+v %#v", a, a), string(asJSON),
	} {
		if strings.Contains(printed, "canary") || strings.Contains(printed, "63616e617279") {
			t.Errorf("printed: %s", printed)
		}
	}
}
