package upstream

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Frames of HTTP/2, as far as a server needs them that says nothing but no.
const (
	h2Data, h2Headers, h2Reset, h2Settings, h2GoAway = 0, 1, 3, 4, 7

	h2EndStream, h2EndHeaders, h2Ack = 1, 4, 1

	h2NoError, h2ProtocolError, h2RefusedStream = 0, 1, 7
)

// h2Server speaks just enough HTTP/2 to take requests and to end them as told:
// after is called with the number of each request that has arrived whole.
type h2Server struct {
	url   string
	ran   atomic.Int32
	trust *tls.Config
}

type h2Conn struct{ net io.Writer }

func (c h2Conn) frame(kind, flags byte, stream uint32, payload []byte) {
	head := make([]byte, 9, 9+len(payload))
	head[0], head[1], head[2] = byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload))
	head[3], head[4] = kind, flags
	binary.BigEndian.PutUint32(head[5:], stream)
	_, _ = c.net.Write(append(head, payload...))
}

func (c h2Conn) reset(stream, code uint32) {
	c.frame(h2Reset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

// goAway says that last was the last stream that will be looked at.
func (c h2Conn) goAway(last uint32) {
	c.frame(h2GoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), h2NoError))
}

func (c h2Conn) reply(stream uint32, body string) {
	const status200, contentType, length16 = 0x88, 0x5f, 16 // of the static table
	head := append([]byte{status200, contentType, length16}, "application/json"...)
	c.frame(h2Headers, h2EndHeaders, stream, head)
	c.frame(h2Data, h2EndStream, stream, []byte(body))
}

func newH2Server(t *testing.T, after func(c h2Conn, n, stream uint32)) *h2Server {
	t.Helper()
	donor := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	donor.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: donor.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &h2Server{url: "https://" + l.Addr().String() + "/mcp", trust: donor.Client().Transport.(*http.Transport).TLSClientConfig}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go s.serve(c, after)
		}
	}()
	return s
}

func (s *h2Server) serve(c io.ReadWriter, after func(h2Conn, uint32, uint32)) {
	if _, err := io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	conn := h2Conn{c}
	conn.frame(h2Settings, 0, 0, nil)
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
			return
		}
		switch kind, flags := head[3], head[4]; {
		case kind == h2Settings && flags&h2Ack == 0:
			conn.frame(h2Settings, h2Ack, 0, nil)
		case (kind == h2Data || kind == h2Headers) && flags&h2EndStream != 0:
			after(conn, uint32(s.ran.Add(1)), binary.BigEndian.Uint32(head[5:]))
		}
	}
}

// dial is a client that has met the server, so that a call is the first request.
func (s *h2Server) dial(t *testing.T) *webClient {
	c := webDial(t, wire.Modern, Spec{URL: s.url})
	c.server.modern.learn(true)
	c.server.http.client.Transport.(*http.Transport).TLSClientConfig = s.trust
	return c
}

func TestACallWhoseStreamWasResetIsNotSentAgain(t *testing.T) {
	for name, code := range map[string]uint32{"PROTOCOL_ERROR": h2ProtocolError, "REFUSED_STREAM": h2RefusedStream} {
		t.Run(name, func(t *testing.T) {
			s := newH2Server(t, func(c h2Conn, _, stream uint32) { c.reset(stream, code) })
			c := s.dial(t)
			for id := 1; id <= 3; id++ { // on a new connection, and on a used one
				webDelivery(t, c.do(webModern(id, "tools/call", `"name":"x"`)), fault.Silent)
			}
			if n := s.ran.Load(); n != 3 {
				t.Errorf("3 calls arrived %d times", n)
			}
		})
	}
}

func TestACallBehindTheLastStreamOfGoAwayWasNeverTaken(t *testing.T) {
	s := newH2Server(t, func(c h2Conn, n, stream uint32) {
		if n == 2 {
			c.goAway(stream - 2)
			return
		}
		c.reply(stream, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
	c := s.dial(t)
	call := webModern(1, "tools/call", `"name":"x"`)
	if o := c.do(call); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	flt := webDelivery(t, c.do(call), fault.Refused)
	if why, proven := fault.RefusalOf(flt.Evidence); why != fault.StreamRefused || !proven {
		t.Errorf("understood as %v, proven %v: %v", why, proven, flt)
	}
	if o := c.do(call); o.Fault != nil {
		t.Errorf("over a new connection: %v", o.Fault)
	}
}
