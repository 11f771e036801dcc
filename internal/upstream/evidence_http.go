package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// countedConn counts what has been written to it.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// journey follows one HTTP request into the network.
type journey struct {
	got    atomic.Bool // it was given a connection
	conn   atomic.Pointer[countedConn]
	before atomic.Int64 // bytes written to the connection before this request
	left   *atomic.Bool // set when a byte may leave us; may be nil
}

func (j *journey) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		c := counted(info.Conn)
		if c != nil {
			j.before.Store(c.written.Load())
		}
		j.conn.Store(c)
		j.got.Store(true)
		if j.left != nil {
			j.left.Store(true)
		}
	}})
}

// counted finds our connection under the layers of TLS above it.
func counted(c net.Conn) *countedConn {
	for {
		switch under := c.(type) {
		case *countedConn:
			return under
		case interface{ NetConn() net.Conn }:
			c = under.NetConn()
		default:
			return nil
		}
	}
}

// unsent reports whether it is certain that no byte of the request left us. On a
// connection that carries several requests at once the bytes of others count,
// which claims less than might be true.
func (j *journey) unsent() bool {
	if !j.got.Load() {
		return true
	}
	c := j.conn.Load()
	return c != nil && c.written.Load() == j.before.Load()
}

// undelivered is the fault of a request that got no HTTP response at all.
func (p *httpPlace) undelivered(j *journey, err error) *fault.Fault {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the wrapper prints the URL, and its query may be secret
	}
	flt := &fault.Fault{
		Delivery: fault.Silent,
		Evidence: fault.Evidence{Text: p.hide.Text(err.Error()), Errno: errnoName(err), Moment: fault.AtCall},
		Cause:    err,
	}
	switch {
	case errors.Is(err, errTooManyRedirects), errors.Is(err, errOtherOrigin), fault.StreamNeverTaken(flt.Text):
		flt.Delivery = fault.Refused // whoever redirects, or takes no more streams, has not run it
	case !j.got.Load():
		flt.Delivery, flt.Moment = fault.Unsent, fault.AtStart
		flt.Text = "cannot connect to " + p.url.Host + ": " + flt.Text
	case j.unsent():
		flt.Delivery = fault.Unsent
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		flt.Text = "the server closed the connection without an answer"
	}
	return flt
}

// byStatus is what a status says about a request that got no MCP reply.
func byStatus(status int) fault.Delivery {
	switch status {
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusProxyAuthRequired, http.StatusGone,
		http.StatusLengthRequired, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusMisdirectedRequest, http.StatusUpgradeRequired,
		http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge:
		return fault.Refused
	}
	// Everything else may have come after the tool ran: a gateway's 502 or 504 above
	// all, and whatever a status might mean that servers use as they like.
	return fault.Silent
}

// refusal is the fault that an HTTP response without an MCP reply stands for.
// body is what was read of it.
func (p *httpPlace) refusal(resp *http.Response, body []byte) *fault.Fault {
	text := "HTTP " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	kind := mediaType(resp.Header)
	if resp.StatusCode/100 == 2 {
		text += " without an MCP reply"
	}
	if kind != "" {
		text += ", " + kind
	}
	if words := p.excerpt(body, kind); words != "" {
		text += ": " + words
	}
	return &fault.Fault{
		Delivery: byStatus(resp.StatusCode),
		Evidence: fault.Evidence{
			Text:       text,
			HTTPStatus: resp.StatusCode,
			RetryAfter: retryAfter(resp.Header, time.Now()),
			Challenge:  strings.Join(resp.Header.Values("Www-Authenticate"), ", "),
			Moment:     fault.AtCall,
		},
	}
}

// broken is the fault of a reply that began and cannot be used. arrived is what
// there is of it.
func (p *httpPlace) broken(resp *http.Response, what string, arrived []byte, err error) *fault.Fault {
	text := what
	if err != nil {
		text = fmt.Sprintf("%s: %s", what, p.hide.Text(err.Error()))
	}
	return &fault.Fault{
		Delivery: fault.Partial,
		Evidence: fault.Evidence{
			Text: text, PartialText: p.excerpt(arrived, ""), HTTPStatus: resp.StatusCode, Errno: errnoName(err), Moment: fault.AtCall,
		},
		Cause: err,
	}
}

// longestWait is the longest we let a server ask for.
const longestWait = 24 * time.Hour

// retryAfter reads the header of that name, in seconds or as a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now) + time.Second // a date names a whole second; its end is meant
	}
	return min(max(wait, 0), longestWait)
}

func mediaType(h http.Header) string {
	switch whole := h.Get("Content-Type"); whole {
	case typeJSON, typeEvents, "": // nearly always
		return whole
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		kind, _, _ = strings.Cut(h.Get("Content-Type"), ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
	}
	return kind
}

// excerpt is the beginning of a body as one line for a person, without secrets.
func (p *httpPlace) excerpt(body []byte, kind string) string {
	const most = 200
	if strings.Contains(kind, "html") {
		body = withoutTags(body)
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(bytes.ToValidUTF8(body[:min(len(body), 4*most)], nil)))
	text = p.hide.Text(strings.Join(strings.Fields(text), " ")) // before it is cut, or half a secret would be left
	if len(text) <= most {
		return text
	}
	end := most
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// withoutTags leaves the words of a page, as far as that is easy.
func withoutTags(page []byte) []byte {
	out := make([]byte, 0, min(len(page), 4<<10))
	for len(page) > 0 && len(out) < 4<<10 {
		open := bytes.IndexByte(page, '<')
		if open < 0 {
			return append(out, page...)
		}
		out = append(append(out, page[:open]...), ' ')
		page = page[open:]
		end := []byte(">")
		for _, hidden := range [...]string{"<script", "<style"} {
			if len(page) > len(hidden) && strings.EqualFold(string(page[:len(hidden)]), hidden) {
				end = []byte("</" + hidden[1:] + ">")
			}
		}
		at := bytes.Index(bytes.ToLower(page[1:]), end)
		if at < 0 {
			break
		}
		page = page[1+at+len(end):]
	}
	return out
}

// secretsOf hides what we know to be secret: configured headers, and the query of
// the address.
func secretsOf(u *url.URL, header http.Header) *secret.Hider {
	h := secret.New()
	for name, values := range header {
		for _, value := range values {
			_, credentials, _ := strings.Cut(value, " ")
			for _, v := range [...]string{value, credentials} {
				if len(v) >= 6 { // whatever the name: nobody configures a header for us to show it
					h.Know(name, v)
				}
			}
			h.Add(name, value)
		}
	}
	h.Know("query", u.RawQuery)
	h.Add("address", u.String())
	return h
}

// readAtMost reads all of r, or its beginning and says that there is more.
func readAtMost(r io.Reader, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)))
	if err == nil && len(b) == limit {
		var one [1]byte
		if n, _ := io.ReadFull(r, one[:]); n > 0 {
			err = errTooLarge
		}
	}
	return b, err
}

var errTooLarge = errors.New("larger than the limit")
