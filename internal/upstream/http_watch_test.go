package upstream

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpmend/mcpmend/internal/wire"
)

// A server that does one thing at a time is busy for a minute. It is shown as
// unresponsive, on a new connection too, and its call ends with its result.
func TestABusyHTTPServerIsShownAndItsCallFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := make(chan struct{}, 1) // a channel, since time does not pass for who waits for a mutex
		pipes := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			req := webRead(r)
			one <- struct{}{}
			defer func() { <-one }()
			if req.Method == "tools/call" {
				time.Sleep(time.Minute)
			}
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
		}))
		_ = h.Listener.Close()
		h.Listener = pipes
		h.Start()
		defer h.Close()
		began := time.Now()
		var shown time.Duration
		server, err := New(Spec{URL: h.URL, OnHealth: func(_, after Health) {
			if after.State == Unresponsive && shown == 0 {
				shown = time.Since(began)
			}
			if after.State == Dead {
				t.Errorf("dead after %v: %v", time.Since(began), after.Cause)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		server.modern.learn(true)
		server.http.client.Transport.(*http.Transport).DialContext = pipes.dial
		session := server.Open(Peer{Era: wire.Modern, Message: func(wire.Message) {}})
		m, err := wire.Parse([]byte(webModern(1, "tools/call", `"name":"x"`)))
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan Outcome, 1)
		session.Do(&Call{Msg: m, Done: func(o Outcome) { got <- o }})
		if o := <-got; o.Fault != nil {
			t.Errorf("after %v: %v", time.Since(began), o.Fault)
		}
		if shown == 0 || shown > 9*time.Second {
			t.Errorf("shown after %v, want 9 s at the latest", shown)
		}
		if state := server.Health().State; state != Healthy {
			t.Errorf("afterwards it is %s", state)
		}
		session.Close()
		_ = server.Close(t.Context())
		time.Sleep(time.Minute) // whoever watches the server sees that it is closed
	})
}
