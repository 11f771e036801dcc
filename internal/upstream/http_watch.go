package upstream

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// A server that has not sent a byte for so long is asked over a connection of its
// own, and shown as unresponsive if it answers nothing there either: after nine
// seconds at the latest. No call ends for it: that is up to its own connection.
const (
	askAfter   = 4 * time.Second
	askTimeout = 4500 * time.Millisecond
	askPause   = 10 * time.Second // when it did not answer
	askAgain   = 30 * time.Second // when it did
)

// inspect looks for requests that have waited long without a byte. Whether the
// server is slow or gone shows on a fresh connection: any answer there is life.
func (l *httpLink) inspect(now time.Time, v *vitals) {
	if old := l.old.Load(); old != nil {
		old.inspect(now)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probing || now.Sub(l.askedAt) < askPause || len(l.suspects(now)) == 0 {
		return
	}
	l.probing, l.askedAt = true, now
	if !l.crew.start(func() { l.probe(v) }) {
		l.probing = false
	}
}

// suspects are the exchanges that have heard nothing for too long since the server
// last answered a question about them. The caller holds mu.
func (l *httpLink) suspects(now time.Time) []*exchange {
	var out []*exchange
	for _, x := range l.live {
		due := x.began.Add(askAfter)
		if !x.cleared.IsZero() {
			due = x.cleared.Add(askAgain)
		}
		if x.listen == nil && x.f.left.Load() && !x.f.started.Load() && !now.Before(due) {
			out = append(out, x)
		}
	}
	return out
}

// probe asks the server for a sign of life and shows the answer.
func (l *httpLink) probe(v *vitals) {
	alive := l.answers()
	l.mu.Lock()
	now := time.Now()
	l.probing = false
	suspects := l.suspects(now)
	if alive {
		for _, x := range suspects {
			x.cleared = now
		}
	}
	l.mu.Unlock()
	switch {
	case alive:
		v.alive()
	case len(suspects) > 0: // else the answer came in the meantime
		v.unresponsive("silent", &fault.Fault{
			Kind: fault.ServerHung,
			Evidence: fault.Evidence{
				Text:   l.place.url.Host + " answers nothing, on a new connection neither; it may be busy",
				Moment: fault.AtCall,
			},
		})
	}
}

// answers reports whether anything comes back over a connection of its own.
func (l *httpLink) answers() bool {
	ctx, cancel := context.WithTimeout(l.ctx, askTimeout)
	defer cancel()
	method, params := wire.MethodPing, []byte(nil)
	l.mu.Lock()
	modern := wire.EraOf(l.version) == wire.Modern
	l.mu.Unlock()
	if modern {
		method, params = wire.MethodDiscover, modernParams(nil, modernMeta(nil))
	}
	m := wire.NewRequest([]byte(`"mcpmend-probe"`), method, params)
	header, _ := l.headers(&m, l.read(&m), nil)
	transport := l.place.client.Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: notFollowed}
	resp, err := l.place.doWith(ctx, client, new(journey), http.MethodPost, l.place.url, header, newPayload(m.Raw))
	if err != nil {
		return false
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 1)
	_ = resp.Body.Close()
	return true
}
