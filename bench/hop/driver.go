package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
)

// A driver makes calls one after another. It is as light as can be, since what
// it costs is part of every latency.
type driver interface {
	// call sends one message and returns the reply's size.
	call(message []byte) (int, error)
}

// lineDriver talks to a process with blocking system calls: no poller, no other
// goroutine that would have to be woken.
type lineDriver struct {
	in, out int
	buf     []byte
}

func newLineDriver(in io.Writer, out io.Reader) *lineDriver {
	// Fd puts a file into blocking mode.
	return &lineDriver{
		in: int(in.(*os.File).Fd()), out: int(out.(*os.File).Fd()),
		buf: make([]byte, 4<<20),
	}
}

func (d *lineDriver) call(message []byte) (int, error) {
	if err := d.send(message); err != nil {
		return 0, err
	}
	for {
		n, err := d.line()
		// Servers may notify at any time; a reply is what has a result or an error.
		if err != nil || !bytes.Contains(d.buf[:min(n, 120)], []byte(`"method"`)) {
			return n, err
		}
	}
}

func (d *lineDriver) send(message []byte) error {
	for line := append(message, '\n'); len(line) > 0; {
		n, err := syscall.Write(d.in, line)
		if err != nil {
			return err
		}
		line = line[n:]
	}
	return nil
}

// line reads one line to the start of buf. Calls are made one at a time, so nothing
// follows it.
func (d *lineDriver) line() (int, error) {
	for fill := 0; ; {
		n, err := syscall.Read(d.out, d.buf[fill:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		fill += n
		if d.buf[fill-1] == '\n' {
			return fill, nil
		}
	}
}

// httpDriver posts on one connection that stays open.
type httpDriver struct {
	conn    net.Conn
	r       *bufio.Reader
	host    string
	path    string
	session string
	out     []byte
}

func newHTTPDriver(target string) (*httpDriver, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &httpDriver{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), host: u.Host, path: u.Path}, nil
}

func (d *httpDriver) call(message []byte) (int, error) {
	d.out = append(d.out[:0], "POST "+d.path+" HTTP/1.1\r\nHost: "+d.host+"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	if d.session != "" {
		d.out = append(d.out, "Mcp-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: "+d.session+"\r\n"...)
	}
	d.out = append(d.out, "Content-Length: "...)
	d.out = strconv.AppendInt(d.out, int64(len(message)), 10)
	d.out = append(append(d.out, "\r\n\r\n"...), message...)
	if _, err := d.conn.Write(d.out); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(d.r, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if d.session == "" {
		d.session = res.Header.Get("Mcp-Session-Id")
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("HTTP %s", res.Status)
	}
	return int(n), err
}

// Messages of a session.
const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hop","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// request is a call with an id that can be replaced in place.
type request struct {
	message []byte
	digits  []byte // of the id, inside message
	next    int
}

func newRequest(size int) *request {
	message := []byte(`{"jsonrpc":"2.0","id":1000000000,"method":"tools/call","params":{"name":"blob","arguments":{"size":` + strconv.Itoa(size) + `}}}`)
	at := bytes.Index(message, []byte("1000000000"))
	// The driver appends a newline; there must be room, or it would copy.
	message = append(message, '\n')[:len(message)]
	return &request{message: message, digits: message[at : at+10], next: 1_000_000_000}
}

// message returns the next call, with an id of its own.
func (r *request) fresh() []byte {
	r.next++
	copy(r.digits, strconv.Itoa(r.next))
	return r.message
}

// handshake opens a legacy session.
func handshake(d driver) error {
	if _, err := d.call([]byte(initialize)); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	var err error
	if line, ok := d.(*lineDriver); ok {
		err = line.send([]byte(initialized))
	} else {
		_, err = d.call([]byte(initialized))
	}
	return err
}
