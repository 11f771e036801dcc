package upstream

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// webStateless is a client of a modern server that is known to be one, so that
// every call is one POST.
func webStateless(t *testing.T, h http.HandlerFunc) *webClient {
	c := webDial(t, wire.Modern, Spec{URL: webServe(t, h).URL})
	c.server.modern.learn(true)
	return c
}

const webSecret = "s3cr3t-t0ken"

func hijack(w http.ResponseWriter) *net.TCPConn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	return c.(*net.TCPConn)
}

// The rows are what a server or something on the way to it may answer after the
// tool ran, or before.
func TestSaysHowFarACallGot(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(w http.ResponseWriter, id string)
		want   fault.Delivery
		status int
		text   string
	}{
		{"reset before the headers", func(w http.ResponseWriter, id string) {
			c := hijack(w)
			_ = c.SetLinger(0)
			_ = c.Close()
		}, fault.Silent, 0, "reset"},
		{"closed before the headers", func(w http.ResponseWriter, id string) {
			_ = hijack(w).Close()
		}, fault.Silent, 0, "without an answer"},
		{"closed in the headers", func(w http.ResponseWriter, id string) {
			c := hijack(w)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Ty")
			_ = c.Close()
		}, fault.Silent, 0, "broken"},
		{"truncated JSON", func(w http.ResponseWriter, id string) {
			c := hijack(w)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\":")
			_ = c.Close()
		}, fault.Partial, 200, "broke off"},
		{"bad JSON", func(w http.ResponseWriter, id string) {
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{]}`, id)
		}, fault.Partial, 200, "could not be read"},
		{"wrong id", func(w http.ResponseWriter, id string) {
			webJSON(w, `{"jsonrpc":"2.0","id":"other","result":{}}`)
		}, fault.Partial, 200, `the id "other" instead of`},
		{"wrong id on a stream", func(w http.ResponseWriter, id string) {
			webEvents(w, `data: {"jsonrpc":"2.0","id":"other","result":{}}`)
		}, fault.Started, 200, "the stream ended before the reply"},
		{"no reply in the answer", func(w http.ResponseWriter, id string) {
			webJSON(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		}, fault.Partial, 200, "no reply"},
		{"a stream without a reply", func(w http.ResponseWriter, id string) {
			webEvents(w, `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
		}, fault.Started, 200, "ended before the reply"},
		{"a stream's headers and no more", func(w http.ResponseWriter, id string) {
			webEvents(w)
		}, fault.Started, 200, "ended before the reply"},
		{"a reply broken in an event", func(w http.ResponseWriter, id string) {
			webEvents(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{"a":}}`)
		}, fault.Partial, 200, "could not be read"},
		{"a login page", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<!DOCTYPE html><html><head><title>Sign in</title><script>var x = '<p>'</script></head>\n<body>Please log in</body></html>")
		}, fault.Silent, 200, "HTTP 200 OK without an MCP reply, text/html: Sign in Please log in"},
		{"accepted and nothing else", func(w http.ResponseWriter, id string) {
			w.WriteHeader(http.StatusAccepted)
		}, fault.Silent, 202, "HTTP 202 Accepted without an MCP reply"},
		{"500", webStatus(500, "oops"), fault.Silent, 500, "HTTP 500 Internal Server Error, text/plain: oops"},
		{"502", webStatus(502, "bad gateway"), fault.Silent, 502, "502"},
		{"503", webStatus(503, ""), fault.Silent, 503, "503"},
		{"504", webStatus(504, ""), fault.Silent, 504, "504"},
		{"302 to a login", webStatus(302, ""), fault.Silent, 302, "302"},
		{"400", webStatus(400, "what?"), fault.Refused, 400, "what?"},
		{"401", webStatus(401, `{"error":"token `+webSecret+` is invalid"}`), fault.Refused, 401, "[Authorization] is invalid"},
		{"401 with a JSON-RPC body", webStatus(401, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Unauthorized"}}`), fault.Refused, 401, "Unauthorized"},
		{"403", webStatus(403, ""), fault.Refused, 403, "403"},
		{"404", webStatus(404, "404 page not found"), fault.Refused, 404, "404 page not found"},
		{"405", webStatus(405, ""), fault.Refused, 405, "405"},
		{"413", webStatus(413, ""), fault.Refused, 413, "413"},
		{"415", webStatus(415, ""), fault.Refused, 415, "415"},
		{"429", webStatus(429, ""), fault.Refused, 429, "429"},
		{"409", webStatus(409, ""), fault.Silent, 409, "409"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ran atomic.Int32
			s := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				req := webRead(r)
				ran.Add(1)
				test.answer(w, string(req.ID))
			}))
			c := webDial(t, wire.Modern, Spec{
				URL:    s.URL + "?key=" + webSecret,
				Header: http.Header{"Authorization": {"Bearer " + webSecret}},
			})
			c.server.modern.learn(true)
			w := c.start(webModern(1, "tools/call", `"name":"x"`), nil)
			flt := webDelivery(t, w.wait(), test.want)
			if !w.Sent() {
				t.Error("the call does not know that it was sent")
			}
			if test.text == "broke off" && flt.PartialText != `{"jsonrpc":` {
				t.Errorf("what arrived: %q", flt.PartialText)
			}
			if flt.HTTPStatus != test.status {
				t.Errorf("status = %d, want %d", flt.HTTPStatus, test.status)
			}
			if !strings.Contains(flt.Error(), test.text) {
				t.Errorf("text = %q, want %q in it", flt.Error(), test.text)
			}
			if all := fmt.Sprintf("%v %v", flt.Error(), flt.Cause); strings.Contains(all, webSecret) {
				t.Errorf("the secret is in the fault: %s", all)
			}
			if n := ran.Load(); n != 1 {
				t.Errorf("the server saw %d requests, want 1", n)
			}
		})
	}
}

func webStatus(status int, body string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", "text/plain")
		if status == 302 {
			w.Header().Set("Location", "/login")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestAJSONRPCErrorIsAReplyWhateverTheStatus(t *testing.T) {
	for _, test := range []struct {
		status int
		id     string
	}{{400, "7"}, {400, "null"}, {404, "7"}, {500, "null"}, {400, `"server-error"`}, {200, "null"}} {
		c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(test.status)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["x"]}}}`, test.id)
		})
		o := c.do(webModern(7, "tools/list", ""))
		if o.Fault != nil {
			t.Errorf("%v: fault %v", test, o.Fault)
			continue
		}
		data, _ := wire.Member(o.Reply.Error(), "data", "supported")
		if string(o.Reply.ID()) != "7" || o.Status != test.status || string(data) != `["x"]` {
			t.Errorf("%v: got status %d, %s", test, o.Status, &o.Reply)
		}
	}
}

func TestAnErrorWithoutAnyIDIsAReply(t *testing.T) {
	c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
		webJSON(w, `{"jsonrpc":"2.0","error":{"code":-32603,"message":"no"}}`)
	})
	if o := c.do(webModern(7, "tools/list", "")); o.Fault != nil || string(o.Reply.ID()) != "7" {
		t.Errorf("got %v %s", o.Fault, &o.Reply)
	}
}

func TestUnderstandsItsOwnIDHoweverItIsWritten(t *testing.T) {
	for sent, answered := range map[string]string{
		"1":                `"1"`,
		"9007199254740993": "9007199254740992", // what JavaScript makes of it
		`"\u0061"`:         `"a"`,
	} {
		c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, answered)
		})
		if o := c.do(webModern(sent, "tools/list", "")); o.Fault != nil {
			t.Errorf("sent %s, answered %s: %v", sent, answered, o.Fault)
		}
	}
	if sameID([]byte(`"a"`), []byte(`"b"`)) || sameID([]byte("1"), []byte("2")) || sameID(nil, []byte("1")) {
		t.Error("different ids are taken for the same")
	}
}

func TestNothingWasSentWhereNobodyListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + ln.Addr().String()
	_ = ln.Close()
	c := webDial(t, wire.Modern, Spec{URL: url + "/?key=" + webSecret})
	c.server.modern.learn(true)
	w := c.start(webModern(1, "tools/call", `"name":"x"`), nil)
	flt := webDelivery(t, w.wait(), fault.Unsent)
	if w.Sent() {
		t.Error("the call thinks that it was sent")
	}
	if flt.Errno != "ECONNREFUSED" || flt.Moment != fault.AtStart || strings.Contains(flt.Error(), webSecret) {
		t.Errorf("errno %q, moment %q, text %q", flt.Errno, flt.Moment, flt.Error())
	}
}

func TestAnUntrustedCertificateIsAHardStop(t *testing.T) {
	var seen atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	c := webDial(t, wire.Modern, Spec{URL: s.URL})
	c.server.modern.learn(true)
	flt := webDelivery(t, c.do(webModern(1, "tools/call", `"name":"x"`)), fault.Unsent)
	if !strings.Contains(flt.Error(), "certificate") || seen.Load() != 0 {
		t.Errorf("text %q, %d requests seen", flt.Error(), seen.Load())
	}
}

func TestHTTP2ResetsOneCallAlone(t *testing.T) {
	hold := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := webRead(r)
		if req.Params.Name == "bad" {
			panic(http.ErrAbortHandler)
		}
		<-hold
		webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{"proto":%d}}`, req.ID, r.ProtoMajor)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := webDial(t, wire.Modern, Spec{URL: s.URL})
	c.server.modern.learn(true)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c.server.http.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
	good := c.start(webModern(1, "tools/call", `"name":"good"`), nil)
	bad := c.start(webModern(2, "tools/call", `"name":"bad"`), nil)
	webDelivery(t, bad.wait(), fault.Silent)
	close(hold)
	if o := good.wait(); o.Fault != nil || !bytes.Contains(o.Reply.Raw, []byte(`"proto":2`)) {
		t.Errorf("the other call: %v %s", o.Fault, &o.Reply)
	}
}

func TestKeepsTheWaitAServerAsksFor(t *testing.T) {
	now := time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-1":                            0,
		"soon":                          0,
		"99999999":                      longestWait,
		"Sat, 14 Nov 2026 12:00:30 GMT": 31 * time.Second,
		"Sat, 14 Nov 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("Retry-After %q: %v, want %v", value, got, want)
		}
	}
	for _, status := range []int{429, 503} {
		c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		})
		if o := c.do(webModern(1, "tools/list", "")); o.Fault == nil || o.Fault.RetryAfter != 7*time.Second {
			t.Errorf("%d: %+v", status, o.Fault)
		}
	}
}

func TestKeepsTheChallengeOfAnUnauthorizedCall(t *testing.T) {
	c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://x/y"`)
		w.WriteHeader(401)
	})
	if flt := webDelivery(t, c.do(webModern(1, "tools/list", "")), fault.Refused); flt.Challenge != `Bearer resource_metadata="https://x/y"` {
		t.Errorf("challenge = %q", flt.Challenge)
	}
}

func TestAnAnswerWithoutEndIsCutOff(t *testing.T) {
	for kind, lead := range map[string]string{
		"application/json":  `{"jsonrpc":"2.0","id":1,"result":"`,
		"text/event-stream": `data: {"jsonrpc":"2.0","id":1,"result":"`,
		"text/html":         "<p>",
	} {
		gone := make(chan struct{})
		s := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(gone)
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, lead)
			chunk := bytes.Repeat([]byte("x"), 64<<10)
			for sent := 0; sent < 256<<20; sent += len(chunk) {
				if sent == 8<<20 && kind == "text/event-stream" {
					_, _ = io.WriteString(w, "\n\n")
				}
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			t.Errorf("%s: all of it was read", kind)
		}))
		c := webDial(t, wire.Modern, Spec{URL: s.URL, MaxMessage: 1 << 20})
		c.server.modern.learn(true)
		flt := webDelivery(t, c.do(webModern(1, "tools/list", "")), fault.Partial)
		if !errors.Is(flt, wire.ErrTooLong) {
			t.Errorf("%s: %v", kind, flt)
		}
		webAwait(t, gone, "the connection to be cut")
	}
}

// A server that closes a connection at the moment it is used again: whatever we
// say of the call has to be true.
func TestNeverDeniesACallThatRan(t *testing.T) {
	var ran atomic.Int32
	c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
		req := webRead(r)
		ran.Add(1)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
		conn := hijack(w)
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_ = conn.Close()
	})
	for i := range 200 {
		before := ran.Load()
		o := c.do(webModern(i, "tools/call", `"name":"x"`))
		n := ran.Load() - before
		switch {
		case n > 1:
			t.Fatalf("round %d ran %d times", i, n)
		case o.Fault == nil && n != 1:
			t.Fatalf("round %d: a reply, and it ran %d times", i, n)
		case o.Fault != nil && o.Fault.Delivery == fault.Unsent && n != 0:
			t.Fatalf("round %d: said to be unsent, and it ran", i)
		}
	}
}

func TestTroubleOfOneCallIsItsOwn(t *testing.T) {
	hold := make(chan struct{})
	var held atomic.Int32
	all := make(chan struct{})
	s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
		switch req.Params.Name {
		case "truncated":
			w.Header().Set("Content-Length", "1000")
			webJSON(w, `{"jsonrpc"`)
			panic(http.ErrAbortHandler)
		case "html":
			_, _ = io.WriteString(w, "<html>")
		case "401":
			w.WriteHeader(401)
		case "badjson":
			webJSON(w, `{`)
		case "reset":
			c := hijack(w)
			_ = c.SetLinger(0)
			_ = c.Close()
		default:
			if held.Add(1) == 10 {
				close(all)
			}
			<-hold
			webEvents(w, fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID))
		}
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	var others []*webCall
	for i := range 10 {
		others = append(others, c.start(webTool(i+1, "slow", "{}"), nil))
	}
	webAwait(t, all, "the calls to arrive")
	for i, name := range []string{"truncated", "html", "401", "badjson", "reset"} {
		if o := c.do(webTool(100+i, name, "{}")); o.Fault == nil {
			t.Errorf("%s: no fault", name)
		}
	}
	close(hold)
	for _, w := range others {
		if o := w.wait(); o.Fault != nil {
			t.Errorf("%s failed: %v", &w.Msg, o.Fault)
		}
	}
	if o := c.do(webTool(200, "later", "{}")); o.Fault != nil {
		t.Errorf("a later call failed: %v", o.Fault)
	}
	if n := s.opened(); n != 1 {
		t.Errorf("%d sessions were opened, want 1", n)
	}
}

func TestABodyIsReadWholeUpToTheLimit(t *testing.T) {
	const limit = 3 << 20
	for _, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 2<<20 + 1, limit - 1, limit, limit + 1, 2 * limit} {
		text := bytes.Repeat([]byte("x"), size)
		got, err := readBody(&http.Response{ContentLength: -1, Body: io.NopCloser(bytes.NewReader(text))}, limit)
		switch {
		case size <= limit && (err != nil || !bytes.Equal(got, text)):
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		case size > limit && !errors.Is(err, wire.ErrTooLong):
			t.Errorf("%d bytes: got %d, %v, want %v", size, len(got), err, wire.ErrTooLong)
		}
		cut := io.NopCloser(io.MultiReader(bytes.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF)))
		if got, err := readBody(&http.Response{ContentLength: -1, Body: cut}, limit); size <= limit && (err == nil || len(got) != size) {
			t.Errorf("%d bytes and a cut: got %d, %v", size, len(got), err)
		}
	}
}
