// Command odd is a server with habits that are legal, or at least common, and that a
// bare client puts up with. It is written by hand: a library would not let it have them.
// bench/harm calls it directly and through mcpmend.
//
//	odd [flags]               on stdio
//	odd -http ADDR [flags]    over HTTP at /mcp, see http.go
//
// Tools: wait, block, big, echo, notes, stderr, log, pid, where, detach, prompt. All but
// block run side by side.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// habits are what a run of it has, as flags.
type habits struct {
	banner   string        // printed on stdout before anything else
	start    time.Duration // before anything is read
	greet    time.Duration // from initialize to its answer
	shutdown time.Duration // after the end of stdin, before the file saved is written
	saved    string
	floats   bool   // ids that are numbers come back as 3.0
	answers  string // what notifications are answered with: null, error, or nothing
	crlf     bool
	twice    bool // each reply comes twice
	reverse  int  // so many replies are held back, and then come in reverse order
	serial   bool // one call after another
	exits    bool // after the first call

	http httpHabits
}

func main() {
	log.SetFlags(0)
	if len(os.Args) > 1 && os.Args[1] == asDaemon {
		daemon()
		return
	}
	var h habits
	flag.StringVar(&h.banner, "banner", "", "")
	flag.DurationVar(&h.start, "start", 0, "")
	flag.DurationVar(&h.greet, "greet", 0, "")
	flag.DurationVar(&h.shutdown, "shutdown", 0, "")
	flag.StringVar(&h.saved, "saved", "", "")
	flag.BoolVar(&h.floats, "floats", false, "")
	flag.StringVar(&h.answers, "answers", "", "")
	flag.BoolVar(&h.crlf, "crlf", false, "")
	flag.BoolVar(&h.twice, "twice", false, "")
	flag.IntVar(&h.reverse, "reverse", 0, "")
	flag.BoolVar(&h.serial, "serial", false, "")
	flag.BoolVar(&h.exits, "exits", false, "")
	h.http.flags()
	flag.Parse()
	if h.http.addr != "" {
		h.serveHTTP()
		return
	}
	if h.banner != "" {
		fmt.Println(h.banner)
	}
	time.Sleep(h.start)
	s := &server{habits: h, out: bufio.NewWriterSize(os.Stdout, 1<<16)}
	s.serve()
}

// A request as it came; only what is needed.
type request struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string
		Name            string
		Arguments       arguments
		Meta            struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
}

// arguments of all tools.
type arguments struct {
	Key     string
	Seconds float64
	Bytes   int
	Count   int
	Text    string
	Every   float64
}

type server struct {
	habits
	running sync.WaitGroup

	mu   sync.Mutex
	out  *bufio.Writer
	held []string
}

func (s *server) serve() {
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			log.Fatalf("not JSON-RPC: %.200q", line)
		}
		s.take(&r)
	}
	s.running.Wait() // calls that were made before the end are answered
	if s.shutdown > 0 {
		time.Sleep(s.shutdown)
		if err := os.WriteFile(s.saved, []byte("saved"), 0o600); err != nil {
			log.Fatal(err)
		}
	}
}

func (s *server) take(r *request) {
	switch {
	case r.ID == nil && s.answers == "null":
		s.line(`{"jsonrpc":"2.0","id":null,"result":{}}`)
	case r.ID == nil && s.answers == "error":
		s.line(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`)
	case r.ID == nil || r.Method == "":
	case r.Method == "initialize":
		time.Sleep(s.greet)
		s.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, s.id(r), initialized(r))
	case r.Method == "ping":
		s.line(`{"jsonrpc":"2.0","id":%s,"result":{}}`, s.id(r))
	case r.Method == "tools/list":
		s.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, s.id(r), toolList)
	case r.Method != "tools/call":
		s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, s.id(r))
	case s.serial || r.Params.Name == "block":
		s.call(r)
	default:
		s.running.Go(func() { s.call(r) })
	}
}

func initialized(r *request) string {
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"odd","version":"1"}}`, r.Params.ProtocolVersion)
}

var toolList = func() string {
	var tools []string
	for _, name := range strings.Fields("wait block big echo notes stderr log pid where detach prompt") {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}()

func (s *server) call(r *request) {
	text, err := s.tool(r.Params.Name, r.Params.Arguments, r.Params.Meta.ProgressToken)
	failed := ""
	if err != nil {
		text, failed = err.Error(), `,"isError":true`
	}
	quoted, _ := json.Marshal(text) // a string always can be
	s.reply(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]%s}}`, s.id(r), quoted, failed))
	if s.exits {
		os.Exit(0)
	}
}

// tool runs one; what it says on the way goes to s.
func (s *server) tool(name string, a arguments, token json.RawMessage) (string, error) {
	pause := time.Duration(a.Seconds * float64(time.Second))
	switch name {
	case "wait", "block":
		time.Sleep(pause)
	case "big":
		return strings.Repeat("x", a.Bytes), nil
	case "echo":
		return strconv.Itoa(len(a.Text)), nil
	case "notes":
		s.notes(a.Count, token)
	case "stderr":
		line := strings.Repeat("e", 1000) + "\n"
		for range a.Bytes / len(line) {
			if _, err := os.Stderr.WriteString(line); err != nil {
				return "", err
			}
		}
	case "log": // the text on stdout, every so often
		for end := time.Now().Add(pause); time.Now().Before(end); {
			s.line("%s", a.Text)
			time.Sleep(min(time.Until(end), time.Duration(a.Every*float64(time.Second))))
		}
	case "pid":
		return strconv.Itoa(os.Getpid()), nil
	case "where":
		dir, err := os.Getwd()
		return dir + " " + os.Getenv("HARM_OWN") + " " + strings.Join(os.Args[1:], " "), err
	case "detach":
		return detach()
	case "prompt":
		return prompt()
	default:
		return "", fmt.Errorf("no tool %s", name)
	}
	return "done " + a.Key, nil
}

// notes sends that many notifications, as fast as they are taken.
func (s *server) notes(count int, token json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pad := strings.Repeat("n", 1000)
	for i := range count {
		fmt.Fprintf(s.out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`+"\n", token, i+1, pad)
	}
}

func (s *server) id(r *request) string {
	if _, err := strconv.Atoi(string(r.ID)); err == nil && s.floats {
		return string(r.ID) + ".0"
	}
	return string(r.ID)
}

// reply sends the reply to a call, as the habits have it.
func (s *server) reply(text string) {
	switch {
	case s.reverse > 0:
		s.mu.Lock()
		s.held = append(s.held, text)
		all := s.held
		s.mu.Unlock()
		if len(all) == s.reverse {
			for i := range all {
				s.line("%s", all[len(all)-1-i])
			}
		}
	case s.twice:
		s.line("%s", text)
		s.line("%s", text)
	default:
		s.line("%s", text)
	}
}

func (s *server) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil { // over HTTP there is no stdout to write to
		return
	}
	fmt.Fprintf(s.out, format, args...)
	if s.crlf {
		s.out.WriteByte('\r')
	}
	s.out.WriteByte('\n')
	if err := s.out.Flush(); err != nil {
		log.Fatal(err)
	}
}
