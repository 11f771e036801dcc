package inject

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// H2 is what goes wrong on connections that speak HTTP/2.
type H2 struct {
	// GoAway is the number of a request, counted from 1 over all connections: its
	// connection is told to go, and that it was not served, as a server does
	// that is about to restart. It happens once. 0 is never.
	GoAway int
	// Refuse resets its stream, too, after that.
	Refuse bool
	// ResetWith is the code with which the server's own resets are passed on; 0
	// leaves them as they are.
	ResetWith uint32
}

// Codes of RFC 9113.
const (
	ProtocolError uint32 = 0x1
	InternalError uint32 = 0x2
	RefusedStream uint32 = 0x7
	Cancel        uint32 = 0x8
	EnhanceCalm   uint32 = 0xb
)

// NewH2Proxy takes TLS connections that speak HTTP/2 and passes their frames on
// to target, which speaks HTTP/2 without TLS.
//
// The HEADERS of a request that is not served are never passed on, and nothing
// after them is, so the server's picture of the compressed headers stays whole.
func NewH2Proxy(target string, files CertFiles, faults H2) (*Proxy, error) {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, addr: l.Addr().String(), conns: map[net.Conn]bool{}}
	h := &h2Proxy{H2: faults, proxy: p}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if p.track(c) {
				go h.carry(c)
			}
		}
	}()
	return p, nil
}

type h2Proxy struct {
	H2
	proxy *Proxy
	seen  atomic.Int64 // requests over all connections
}

// Frame types of RFC 9113.
const (
	frameHeaders   = 0x1
	frameRST       = 0x3
	frameGoAway    = 0x7
	prefaceLength  = 24
	frameHeaderLen = 9
)

func (h *h2Proxy) carry(client net.Conn) {
	defer h.proxy.forget(client)
	server, err := net.Dial("tcp", h.proxy.target)
	if err != nil {
		return
	}
	if !h.proxy.track(server) {
		return
	}
	defer h.proxy.forget(server)
	// The answers and our own frames share one writer.
	out := &frameWriter{w: client}
	go h.back(server, client, out)
	if _, err := io.CopyN(server, client, prefaceLength); err != nil {
		return
	}
	gone := uint32(0) // streams from here on are no longer served
	for {
		frame, err := readFrame(client)
		if err != nil {
			return
		}
		stream := binary.BigEndian.Uint32(frame[5:]) & 0x7fffffff
		if frame[3] == frameHeaders && gone == 0 && h.GoAway > 0 && h.seen.Add(1) == int64(h.GoAway) {
			gone = stream
			h.proxy.mu.Lock()
			h.proxy.strikes = append(h.proxy.strikes, oracle.Strike{At: ledger.Now(), What: "GOAWAY"})
			h.proxy.mu.Unlock()
			last := binary.BigEndian.AppendUint32(nil, max(stream, 2)-2)
			out.write(makeFrame(frameGoAway, 0, binary.BigEndian.AppendUint32(last, 0)))
			if h.Refuse {
				out.write(makeFrame(frameRST, stream, binary.BigEndian.AppendUint32(nil, RefusedStream)))
			}
		}
		if gone != 0 && stream >= gone {
			continue
		}
		if _, err := server.Write(frame); err != nil {
			return
		}
	}
}

// back passes the server's frames on.
func (h *h2Proxy) back(server, client net.Conn, out *frameWriter) {
	defer client.Close()
	for {
		frame, err := readFrame(server)
		if err != nil {
			return
		}
		if frame[3] == frameRST && h.ResetWith != 0 {
			binary.BigEndian.PutUint32(frame[frameHeaderLen:], h.ResetWith)
		}
		if out.write(frame) != nil {
			return
		}
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, frameHeaderLen)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	frame := append(head, make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))...)
	_, err := io.ReadFull(r, frame[frameHeaderLen:])
	return frame, err
}

func makeFrame(kind byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	frame := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, 0}
	frame = binary.BigEndian.AppendUint32(frame, stream)
	return append(frame, payload...)
}

type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frameWriter) write(frame []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.w.Write(frame)
	return err
}
