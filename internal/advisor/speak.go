package advisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/secret"
)

const (
	maxReply  = 64 << 10  // of a model's text
	maxBody   = 256 << 10 // of the HTTP response around it
	maxTokens = 4096
)

// endpoint is a model's service over HTTP.
type endpoint struct {
	host      string // for errors
	url       string
	client    *http.Client
	authorize func(http.Header) // holds the key, so that printing an endpoint does not show it
	hide      *secret.Hider
	// forms write the request, the one with the strictest format first. level is the
	// first one that the service is known to take.
	forms []func(prompt) any
	level atomic.Int32
	// read finds the model's text in a response.
	read func(body []byte) (text string, whole bool, err error)
}

// dialler returns the way to a model over HTTP.
func dialler(o Options) (func(context.Context, prompt) (string, error), error) {
	e := &endpoint{}
	var home, path string
	switch o.Provider {
	case OpenAI, "":
		home, path = "https://api.openai.com/v1", "/chat/completions"
	case Anthropic:
		home, path = "https://api.anthropic.com", "/v1/messages"
	default:
		return nil, fmt.Errorf("no provider is called %q", o.Provider)
	}
	if o.Model == "" {
		return nil, errors.New("no model is named")
	}
	if o.BaseURL == "" {
		if o.Key == "" {
			return nil, fmt.Errorf("%s needs a key", home)
		}
		o.BaseURL = home
	}
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil: // the error prints the URL
		return nil, errors.New("the base URL cannot be read")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("the base URL does not begin with https:// or http:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the base URL holds more than host and path; a key has its own place")
	case u.Scheme == "http" && o.Key != "" && !isThisMachine(u.Hostname()):
		return nil, fmt.Errorf("the key would go to %s over plain HTTP", u.Host)
	}
	e.host, e.url = u.Host, strings.TrimSuffix(u.String(), "/")+path
	e.client = newClient(o.Local)
	key := string(o.Key)
	e.hide = secret.New()
	e.hide.Know("key", key)
	if o.Provider == Anthropic {
		e.anthropic(o.Model, key)
	} else {
		e.openAI(o.Model, key, u.Hostname() == "api.openai.com")
	}
	return e.ask, nil
}

// newClient makes an HTTP client that goes where it was told to and nowhere else:
// a redirect would take the arguments, and the key, to somebody nobody has named.
func newClient(local bool) *http.Client {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     time.Minute,
	}
	if local {
		t.Proxy = nil
		t.DialContext = (&net.Dialer{Control: nearby}).DialContext
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func isThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// nearby refuses to connect to the world. It sees the address that is really
// dialled, after any name was resolved.
func nearby(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if ip := to.Addr().Unmap(); err == nil && (ip.IsLoopback() || ip.IsPrivate()) {
		return nil
	}
	return fmt.Errorf("%s is not on this machine or a private network", address)
}

// ask sends the question in the strictest form the service takes. Which that is,
// only trying tells; the answer to a form it does not know is a 400 or the like,
// and comes at once.
func (e *endpoint) ask(ctx context.Context, p prompt) (string, error) {
	for level := int(e.level.Load()); ; level++ {
		status, body, err := e.post(ctx, e.forms[level](p))
		if err != nil {
			if isUnknownForm(status) && level+1 < len(e.forms) {
				continue
			}
			return "", err
		}
		e.level.Store(int32(level))
		text, whole, err := e.read(body)
		switch {
		case err != nil:
			return "", e.fault(fault.Evidence{Text: "answered with something that is no model's answer", HTTPStatus: status})
		case !whole:
			return "", e.fault(fault.Evidence{Text: "stopped in the middle of its answer"})
		}
		return text, nil
	}
}

func isUnknownForm(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return true
	}
	return false
}

// post sends one request. On an error status is what came back, or 0.
func (e *endpoint) post(ctx context.Context, request any) (status int, body []byte, err error) {
	payload, err := json.Marshal(request)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(payload))
	if err != nil {
		return 0, nil, errors.New("the request cannot be made")
	}
	req.Header.Set("Content-Type", "application/json")
	e.authorize(req.Header)
	resp, err := e.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the wrapper prints the URL
		}
		return 0, nil, e.fault(fault.Evidence{Text: err.Error()})
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return resp.StatusCode, nil, e.refusal(resp, body)
	case err != nil:
		return resp.StatusCode, nil, e.fault(fault.Evidence{Text: err.Error()})
	case len(body) > maxBody:
		return resp.StatusCode, nil, tooMuch()
	}
	return resp.StatusCode, body, nil
}

// fault is trouble with the service. The text of the evidence says which.
func (e *endpoint) fault(evidence fault.Evidence) *fault.Fault {
	evidence.Text = "the model at " + e.host + ": " + printable(e.hide.Text(evidence.Text), 300)
	delivery := fault.Silent
	if evidence.HTTPStatus != 0 {
		delivery = fault.Answered
	}
	return fault.Diagnose(evidence).Fault(evidence, delivery, nil)
}

// refusal is the fault of an answer with another status than 200. The services
// put what is wrong into error.message, or error itself.
func (e *endpoint) refusal(resp *http.Response, body []byte) *fault.Fault {
	evidence := fault.Evidence{
		Text:       fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)),
		HTTPStatus: resp.StatusCode,
	}
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31); err == nil {
		evidence.RetryAfter = time.Duration(seconds) * time.Second
	}
	var said struct{ Error json.RawMessage }
	if json.Unmarshal(body, &said) == nil {
		var message struct{ Message string }
		if json.Unmarshal(said.Error, &message) != nil {
			_ = json.Unmarshal(said.Error, &message.Message)
		}
		if message.Message != "" {
			evidence.Text += ": " + message.Message
		}
	}
	return e.fault(evidence)
}

func tooMuch() *fault.Fault {
	return &fault.Fault{Kind: fault.MessageTooLarge, Delivery: fault.Partial, Evidence: fault.Evidence{Text: "the model's answer is too long to be one"}}
}

// message is one turn of a conversation, in both formats.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (e *endpoint) openAI(model, key string, original bool) {
	e.authorize = func(h http.Header) {
		if key != "" {
			h.Set("Authorization", "Bearer "+key)
		}
	}
	form := func(format any) func(prompt) any {
		return func(p prompt) any {
			body := map[string]any{"model": model, "messages": []message{{"system", p.system}, {"user", p.user}}}
			if format != nil {
				body["response_format"] = format
			}
			// OpenAI's newer models reject the old name, other servers do not know the new one.
			if original {
				body["max_completion_tokens"] = maxTokens
			} else {
				body["max_tokens"] = maxTokens
			}
			return body
		}
	}
	e.forms = []func(prompt) any{
		form(map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "correction", "schema": answerSchema}}),
		form(map[string]any{"type": "json_object"}),
		form(nil),
	}
	e.read = readOpenAI
}

func readOpenAI(body []byte) (text string, whole bool, err error) {
	var r struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      struct {
				Content *string
				Refusal string
			}
		}
	}
	if err := json.Unmarshal(body, &r); err != nil || len(r.Choices) == 0 {
		return "", false, errors.New("not a chat completion")
	}
	choice := r.Choices[0]
	switch {
	case choice.Message.Refusal != "" || choice.FinishReason == "content_filter":
		return refused, true, nil
	case choice.Message.Content == nil:
		return "", false, errors.New("no content")
	}
	return *choice.Message.Content, choice.FinishReason != "length", nil
}

// refused stands for an answer that the service kept back.
const refused = `{"corrected":false,"reason":"the model refused to answer"}`

func (e *endpoint) anthropic(model, key string) {
	e.authorize = func(h http.Header) {
		h.Set("Anthropic-Version", "2023-06-01")
		if key != "" {
			h.Set("X-Api-Key", key)
		}
	}
	plain := func(p prompt) map[string]any {
		return map[string]any{"model": model, "max_tokens": maxTokens, "system": p.system, "messages": []message{{"user", p.user}}}
	}
	e.forms = []func(prompt) any{
		// A tool that the model has to use is how this API asks for an object of a
		// shape. Its "use" is the answer; nothing is run.
		func(p prompt) any {
			body := plain(p)
			body["tools"] = []any{map[string]any{"name": "answer", "description": "Gives the answer.", "input_schema": answerSchema}}
			body["tool_choice"] = map[string]any{"type": "tool", "name": "answer"}
			return body
		},
		func(p prompt) any { return plain(p) },
	}
	e.read = readAnthropic
}

func readAnthropic(body []byte) (text string, whole bool, err error) {
	var r struct {
		Type       string
		StopReason string `json:"stop_reason"`
		Content    []struct {
			Type  string
			Text  string
			Name  string
			Input json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Type != "message" {
		return "", false, errors.New("not a message")
	}
	if r.StopReason == "refusal" {
		return refused, true, nil
	}
	whole = r.StopReason != "max_tokens" && r.StopReason != "model_context_window_exceeded"
	for _, c := range r.Content {
		switch {
		case c.Type == "tool_use" && c.Name == "answer":
			return string(c.Input), whole, nil
		case c.Type == "text":
			text += c.Text
		}
	}
	return text, whole, nil
}

// sampler returns the way to a model through an MCP client.
func sampler(o Options) (func(context.Context, prompt) (string, error), error) {
	switch {
	case o.Sample == nil:
		return nil, errors.New("sampling needs Sample")
	case o.Local:
		return nil, errors.New("where a client's model runs is not known, so sampling is never local")
	}
	return func(ctx context.Context, p prompt) (string, error) {
		text, err := o.Sample(ctx, p.system+"\n\n"+p.user)
		if err != nil {
			evidence := fault.Evidence{Text: "the client's model: " + printable(secret.Scrub(err.Error()), 300)}
			return "", fault.Diagnose(evidence).Fault(evidence, fault.Silent, nil)
		}
		return text, nil
	}, nil
}
