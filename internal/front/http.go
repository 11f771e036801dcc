package front

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Path is where HTTP serves MCP.
const Path = "/mcp"

// The headers of MCP, in the spelling that net/http gives them.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
)

const (
	// patience is how long a client may take to read the next piece of what it
	// asked for, and to send the whole of what it asks.
	patience = 30 * time.Second
	// farewell is how long calls may still take when we are told to stop.
	farewell = 5 * time.Second
)

// HTTP serves any number of clients over Streamable HTTP, of both eras, on one
// path. It is an [http.Handler]; [HTTP.Serve] adds the server around it. The
// fields are not to be changed once it serves.
//
// Each client has a session of its own with the server: a legacy one by its session
// id, a modern one by what it says about itself.
type HTTP struct {
	// Catalogue is what the clients get to see.
	Catalogue *catalogue.Catalogue
	// Token is what a client must present as bearer token, "" for none.
	Token string
	// AllowedHosts are further values of the Host header to answer to, with or
	// without a port. Loopback and the address the client reached are always
	// among them.
	AllowedHosts []string
	// AllowedOrigins are web origins, such as "https://example.com", whose pages
	// may call us. Loopback is always among them.
	AllowedOrigins []string
	// MaxMessage is the largest message in bytes, 0 for wire.DefaultLimit.
	MaxMessage int
	// SessionIdle is how long a legacy session without requests and streams is
	// kept, 0 for an hour.
	SessionIdle time.Duration

	once     sync.Once
	sessions sessions      // of legacy clients
	modern   sessions      // of modern ones
	mirrors  mirrors       // what is known about the headers that tool calls need
	stopping chan struct{} // closed when streams without an end must end
	stop     sync.Once
}

func (h *HTTP) init() {
	h.once.Do(func() {
		h.stopping = make(chan struct{})
		h.sessions.idle = h.SessionIdle
		if h.sessions.idle <= 0 {
			h.sessions.idle = time.Hour
		}
		h.modern.idle, h.modern.most = modernIdle, mostModern
	})
}

// Serve answers what arrives on l until ctx is done. Calls that are under way
// then have a few seconds to finish; sessions are closed.
func (h *HTTP) Serve(ctx context.Context, l net.Listener) error {
	h.init()
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	stopped := make(chan struct{})
	watching := context.AfterFunc(ctx, func() {
		defer close(stopped)
		h.hush()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if watching() {
		_ = server.Close() // the listener failed by itself
	} else {
		<-stopped
	}
	h.Close()
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// hush ends the streams that would never end by themselves.
func (h *HTTP) hush() {
	h.init()
	h.stop.Do(func() { close(h.stopping) })
}

func (h *HTTP) isStopping() bool {
	select {
	case <-h.stopping:
		return true
	default:
		return false
	}
}

// Close ends every session. Serve does so by itself.
func (h *HTTP) Close() {
	h.hush()
	h.sessions.closeAll()
	h.modern.closeAll()
}

// ServeHTTP answers one request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.init()
	// A deadline of an earlier request on this connection may have passed.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
	if !h.admit(w, r) {
		return
	}
	if r.URL.Path != Path {
		refuse(w, http.StatusNotFound, "MCP is served at "+Path)
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.listen(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		notAllowed(w)
	}
}

func (h *HTTP) post(w http.ResponseWriter, r *http.Request) {
	// A web page can send other types without asking us first.
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return
	}
	body, ok := h.read(w, r)
	if !ok {
		return
	}
	if len(body) > 0 && body[0] == '[' {
		h.postBatch(w, r, body)
		return
	}
	m, err := parse(body)
	if err != nil {
		code := wire.CodeParse
		if errors.Is(err, wire.ErrEnvelope) {
			code = wire.CodeInvalidRequest
		}
		fail(w, http.StatusBadRequest, idIn(body), code, err.Error(), nil)
		return
	}
	if eraOf(r, &m) == wire.Modern {
		h.postModern(w, r, m)
		return
	}
	h.postLegacy(w, r, []wire.Message{m})
}

// eraOf tells which era a request belongs to: by what its header says, else by
// what it says itself.
func eraOf(r *http.Request, m *wire.Message) wire.Era {
	if said := wire.EraOf(r.Header.Get(headerVersion)); said != wire.EraUnknown {
		return said
	}
	if r.Header.Get(headerSession) != "" {
		return wire.Legacy
	}
	return wire.EraOfRequest(m)
}

// read takes in the body, or says why not.
func (h *HTTP) read(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	limit := h.MaxMessage
	if limit <= 0 {
		limit = wire.DefaultLimit
	}
	if r.ContentLength > int64(limit) {
		w.Header().Set("Connection", "close")
		fail(w, http.StatusRequestEntityTooLarge, nil, wire.CodeInvalidRequest, wire.ErrTooLong.Error(), nil)
		return nil, false
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(patience))
	// What is announced may never come, so only some of it is trusted at first.
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), 1<<20)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, int64(limit)))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		fail(w, http.StatusRequestEntityTooLarge, nil, wire.CodeInvalidRequest, wire.ErrTooLong.Error(), nil)
		return nil, false
	case err != nil:
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			w.Header().Set("Connection", "close")
		}
		fail(w, http.StatusBadRequest, nil, wire.CodeParse, "the body could not be read", nil)
		return nil, false
	}
	return bytes.TrimSpace(body.Bytes()), true
}

// parse reads one message. Bytes that are not UTF-8 are replaced, as on stdio.
func parse(body []byte) (wire.Message, error) {
	m, err := wire.Parse(body)
	if errors.Is(err, wire.ErrUTF8) {
		return wire.Parse(bytes.ToValidUTF8(body, []byte("\uFFFD")))
	}
	return m, err
}

// idIn is the id of something that is no message but JSON at least.
func idIn(body []byte) []byte {
	if wire.Valid(body) != nil {
		return nil
	}
	id, ok := wire.Member(body, "id")
	if !ok || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return nil
	}
	return id
}

// refuse answers what was turned away before any message was looked at.
func refuse(w http.ResponseWriter, status int, text string) {
	http.Error(w, text, status)
}

func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, GET, DELETE")
	refuse(w, http.StatusMethodNotAllowed, "method not allowed")
}

// fail answers a message with an error of ours. id may be nil.
func fail(w http.ResponseWriter, status int, id []byte, code int, text string, data []byte) {
	m := wire.NewError(id, code, text, data)
	_ = (&answer{w: w}).json(outgoing{msg: m, status: status})
}

// accepted is what a client says it can read.
type accepted struct {
	json, events bool
	eventsFirst  bool // the client would rather have events
}

func accepts(header http.Header) accepted {
	values := header["Accept"]
	if len(values) == 0 {
		return accepted{json: true, events: true}
	}
	var a accepted
	for _, value := range values {
		for value != "" {
			var item string
			item, value, _ = strings.Cut(value, ",")
			item, _, _ = strings.Cut(item, ";")
			switch strings.ToLower(strings.TrimSpace(item)) {
			case "text/event-stream", "text/*":
				a.events = true
				a.eventsFirst = a.eventsFirst || !a.json
			case "application/json", "application/*":
				a.json = true
			case "*/*":
				a.json, a.events = true, true
			}
		}
	}
	return a
}
