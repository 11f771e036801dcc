// Command patient is an MCP server with one of many ills, for bench/doctor. What
// breaks before the server speaks (a variable, a package, an interpreter) is in
// the scripts of the set-ups, which end by becoming this program; what breaks
// while it speaks is here. Without flags it is in good health.
//
//	patient                         on stdio
//	patient -http ADDR -speak HOW   over HTTP at /mcp, says "listening ADDR" on stderr
//
// Arguments that are no flags of its own are ignored, since a configuration may
// hold anything.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// ills are what a patient may have.
type ills struct {
	banner  string        // printed on stdout before anything else
	slow    time.Duration // time until it reads the first message
	hang    bool          // never answers
	version string        // of the protocol, the only one it knows
	refuse  string        // the error that initialize gets
	code    string        // and its code
	crash   string        // the method on which it ends, with a panic
	tools   int
	tool    string // name of the first tool
	schema  string // of the first tool
	hold    string // port to listen on, as a side port of the server
	dial    string // address that must answer before it starts
	dialNet string
	http    string
	speak   string
}

func main() {
	p := ills{tools: 2, tool: "look", schema: `{"type":"object","properties":{"at":{"type":"string"}}}`, code: "-32603", dialNet: "tcp", speak: "http"}
	p.parse(os.Args[1:])
	if p.dial != "" {
		p.connect()
	}
	if p.hold != "" {
		defer p.listen().Close()
	}
	if p.http != "" {
		p.serveHTTP()
		return
	}
	p.serve()
}

func (p *ills) parse(args []string) {
	text := map[string]*string{
		"-banner": &p.banner, "-version": &p.version, "-refuse": &p.refuse, "-code": &p.code, "-crash": &p.crash, "-tool": &p.tool,
		"-schema": &p.schema, "-hold": &p.hold, "-dial": &p.dial, "-net": &p.dialNet, "-http": &p.http, "-speak": &p.speak,
	}
	for i := 0; i < len(args); i++ {
		if args[i] == "-hang" {
			p.hang = true
			continue
		}
		if i+1 == len(args) {
			return
		}
		switch to := text[args[i]]; {
		case to != nil:
			*to = args[i+1]
		case args[i] == "-slow":
			p.slow, _ = time.ParseDuration(args[i+1])
		case args[i] == "-tools":
			p.tools, _ = strconv.Atoi(args[i+1])
		default:
			continue
		}
		i++
	}
}

// connect dies the way a server does whose database is not there.
func (p *ills) connect() {
	c, err := net.DialTimeout(p.dialNet, p.dial, 2*time.Second)
	if err == nil {
		c.Close()
		return
	}
	host, port, _ := net.SplitHostPort(p.dial)
	if ips, err := net.LookupIP(host); err == nil && p.dialNet != "tcp6" {
		host = ips[0].String()
	} else if p.dialNet == "tcp6" {
		host = "::1"
	}
	fmt.Fprintf(os.Stderr, "Error: connect ECONNREFUSED %s:%s\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16) {\n  errno: -111,\n  code: 'ECONNREFUSED',\n  syscall: 'connect',\n  address: '%s',\n  port: %s\n}\n", host, port, host, port)
	os.Exit(1)
}

func (p *ills) listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:"+p.hold)
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: listen EADDRINUSE: address already in use 127.0.0.1:%s\n    at Server.setupListenHandle [as _listen2] (node:net:1908:16) {\n  code: 'EADDRINUSE',\n  errno: -98,\n  syscall: 'listen',\n  address: '127.0.0.1',\n  port: %s\n}\n", p.hold, p.hold)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "ready")
	return l
}

// serve speaks newline-delimited JSON on stdio, by hand: what is wrong with a
// server must not be mended by a library underneath it.
func (p *ills) serve() {
	if p.banner != "" {
		fmt.Println(p.banner)
	}
	time.Sleep(p.slow)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if p.hang {
			continue
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion string }
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		if m.Method == p.crash {
			panic("runtime error: invalid memory address or nil pointer dereference")
		}
		reply, failed := p.answer(m.Method, m.Params.ProtocolVersion)
		member := "result"
		if failed {
			member = "error"
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`+"\n", m.ID, member, reply)
	}
}

func (p *ills) answer(method, version string) (reply string, failed bool) {
	switch method {
	case "initialize":
		if p.refuse != "" {
			return fmt.Sprintf(`{"code":%s,"message":%q}`, p.code, p.refuse), true
		}
		if p.version != "" && version != p.version {
			return fmt.Sprintf(`{"code":-32602,"message":"Unsupported protocol version: %s (supported versions: %s)"}`, version, p.version), true
		}
		return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"patient","version":"1.0.0"}}`, version), false
	case "ping":
		return `{}`, false
	case "tools/list":
		return `{"tools":[` + strings.Join(p.list(), ",") + `]}`, false
	case "tools/call":
		return `{"content":[{"type":"text","text":"well"}]}`, false
	}
	return `{"code":-32601,"message":"Method not found"}`, true
}

func (p *ills) list() []string {
	var tools []string
	for i := range p.tools {
		name, schema := fmt.Sprintf("tool_%d", i), `{"type":"object"}`
		if i == 0 {
			name, schema = p.tool, p.schema
		}
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"Looks.","inputSchema":%s,"annotations":{"readOnlyHint":true}}`, name, schema))
	}
	return tools
}
