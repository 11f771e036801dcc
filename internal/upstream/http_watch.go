package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

var errBlackHole = errors.New("no sign of life")

// inspect looks for requests that have waited long without a byte. Whether the
// server is slow or gone shows on a fresh connection: any answer there is life.
func (l *httpLink) inspect(now time.Time, v *vitals) {
	if old := l.old.Load(); old != nil {
		old.inspect(now)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probing || len(l.suspects(now)) == 0 {
		return
	}
	l.probing = true
	if !l.crew.start(func() { l.probe(v) }) {
		l.probing = false
	}
}

// suspects are the exchanges that have heard nothing for too long since they were
// last found innocent. The caller holds mu.
func (l *httpLink) suspects(now time.Time) []*exchange {
	var out []*exchange
	for _, x := range l.live {
		since := x.began
		if x.cleared.After(since) {
			since = x.cleared.Add(probeAfter - silentFor)
		}
		if x.listen == nil && x.f.left.Load() && !x.f.started.Load() && now.Sub(since) >= silentFor {
			out = append(out, x)
		}
	}
	return out
}

// probe asks the server for a sign of life and acts on the answer.
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
	if alive {
		v.alive()
		return
	}
	why := &fault.Fault{
		Kind: fault.ServerHung,
		Evidence: fault.Evidence{
			Text:   l.place.url.Host + " does not answer any more, on a new connection neither",
			Moment: fault.AtCall,
		},
		Cause: errBlackHole,
	}
	v.lost(why, true)
	for _, x := range suspects {
		x.verdict.Store(why)
		x.cancel()
	}
}

// answers reports whether anything comes back over a connection of its own.
func (l *httpLink) answers() bool {
	ctx, cancel := context.WithTimeout(l.ctx, checkTimeout)
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
