package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// httpHabits are those that only a server over HTTP can have.
type httpHabits struct {
	addr     string
	hangs    bool          // GET is never answered
	closes   bool          // each connection serves one request
	trickle  time.Duration // the body of a reply comes in ten pieces, this far apart
	oneThing bool          // answers nothing else while a call runs, as a server of one thread
	perCall  bool          // a process of its own for each call, which ends with it
	child    bool          // is such a process
}

func (h *httpHabits) flags() {
	flag.StringVar(&h.addr, "http", "", "")
	flag.BoolVar(&h.hangs, "get-hangs", false, "")
	flag.BoolVar(&h.closes, "closes", false, "")
	flag.DurationVar(&h.trickle, "trickle", 0, "")
	flag.BoolVar(&h.oneThing, "one-thing", false, "")
	flag.BoolVar(&h.perCall, "process-per-call", false, "")
	flag.BoolVar(&h.child, "child", false, "")
}

func (h *habits) serveHTTP() {
	if h.http.perCall && !h.http.child {
		log.Fatal(h.superviseHTTP())
	}
	var l net.Listener
	var err error
	if h.http.child {
		l, err = net.FileListener(os.NewFile(3, "listener"))
	} else {
		l, err = net.Listen("tcp", h.http.addr)
	}
	if err != nil {
		log.Fatal(err)
	}
	s := &http.Server{Handler: &httpServer{server: server{habits: *h}}}
	s.SetKeepAlivesEnabled(!h.http.closes && !h.http.child)
	log.Fatal(s.Serve(l))
}

// superviseHTTP keeps the listening socket, as inetd and systemd do, so that a connection
// waits while the process that answers is replaced.
func (h *habits) superviseHTTP() error {
	l, err := net.Listen("tcp", h.http.addr)
	if err != nil {
		return err
	}
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	for {
		cmd := exec.Command(os.Args[0], append([]string{"-child"}, os.Args[1:]...)...)
		cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{file}
		dieWithParent(cmd)
		if err := cmd.Run(); err != nil {
			return err
		}
	}
}

type httpServer struct {
	server
	one sync.Mutex
}

func (s *httpServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if s.http.oneThing {
		s.one.Lock()
		defer s.one.Unlock()
	}
	if req.Method == http.MethodGet && s.http.hangs {
		<-req.Context().Done()
		return
	}
	if req.Method != http.MethodPost {
		http.Error(w, "no such method", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(req.Body)
	var r request
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.ID == nil || r.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	text := s.answer(&r)
	if s.http.child && r.Method == "tools/call" {
		// With its length given, nothing is missing when the process ends after the flush.
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		s.send(w, text)
		w.(http.Flusher).Flush()
		os.Exit(0)
	}
	s.send(w, text)
}

func (s *httpServer) answer(r *request) string {
	result := ""
	switch r.Method {
	case "initialize":
		time.Sleep(s.greet)
		result = initialized(r)
	case "ping":
		result = "{}"
	case "tools/list":
		result = toolList
	case "tools/call":
		text, err := s.tool(r.Params.Name, r.Params.Arguments, nil)
		quoted, _ := json.Marshal(text) // a string always can be
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"isError":%t}`, quoted, err != nil)
	default:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, r.ID)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

func (s *httpServer) send(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	if s.http.trickle == 0 || !strings.Contains(text, "content") {
		io.WriteString(w, text)
		return
	}
	piece := max(len(text)/10, 1)
	for len(text) > 0 {
		n := min(piece, len(text))
		io.WriteString(w, text[:n])
		w.(http.Flusher).Flush()
		text = text[n:]
		time.Sleep(s.http.trickle)
	}
}
