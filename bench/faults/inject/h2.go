package inject

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// NewH2Proxy takes TLS connections that speak HTTP/2 and passes their frames on
// to target, which speaks HTTP/2 without TLS. The request number nth is refused
// with RST_STREAM (REFUSED_STREAM) and the connection told to go (GOAWAY), as a
// server does that is about to restart. It happens once.
//
// The refused HEADERS are never passed on, and nothing after them is, so the
// server's picture of the compressed headers stays whole.
func NewH2Proxy(target string, files CertFiles, nth int) (*Proxy, error) {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, addr: l.Addr().String(), conns: map[net.Conn]bool{}}
	refuse := &refusal{proxy: p, nth: nth}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if p.track(c) {
				go refuse.carry(c)
			}
		}
	}()
	return p, nil
}

// refusal counts requests over all connections until the one to be refused.
type refusal struct {
	proxy *Proxy
	mu    sync.Mutex
	seen  int
	nth   int
}

// Frame types and codes of RFC 9113.
const (
	frameHeaders   = 0x1
	frameRST       = 0x3
	frameGoAway    = 0x7
	refusedStream  = 0x7
	prefaceLength  = 24
	frameHeaderLen = 9
)

func (r *refusal) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	return r.seen == r.nth
}

func (r *refusal) carry(client net.Conn) {
	defer r.proxy.forget(client)
	server, err := net.Dial("tcp", r.proxy.target)
	if err != nil {
		return
	}
	if !r.proxy.track(server) {
		return
	}
	defer r.proxy.forget(server)
	// The answers and our own frames share one writer.
	out := &frameWriter{w: client}
	go func() {
		defer client.Close()
		for {
			frame, err := readFrame(server)
			if err != nil || out.write(frame) != nil {
				return
			}
		}
	}()
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
		if frame[3] == frameHeaders && gone == 0 && r.due() {
			gone = stream
			r.proxy.mu.Lock()
			r.proxy.strikes = append(r.proxy.strikes, oracle.Strike{At: ledger.Now(), What: "REFUSED_STREAM and GOAWAY"})
			r.proxy.mu.Unlock()
			out.write(makeFrame(frameRST, stream, binary.BigEndian.AppendUint32(nil, refusedStream)))
			last := binary.BigEndian.AppendUint32(nil, max(stream, 2)-2)
			out.write(makeFrame(frameGoAway, 0, binary.BigEndian.AppendUint32(last, 0)))
		}
		if gone != 0 && stream >= gone {
			continue
		}
		if _, err := server.Write(frame); err != nil {
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
