package system

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// RunDirect is the baseline: what an application gets that uses the go-sdk's
// client as it comes. The program only carries the driver's calls to
// ClientSession.CallTool and the results or errors back.
func RunDirect(args []string) int {
	flags := flag.NewFlagSet("direct", flag.ContinueOnError)
	deadline := flags.Duration("deadline", time.Minute, "of each call")
	if flags.Parse(args) != nil || flags.NArg() == 0 {
		return 2
	}
	d := &direct{deadline: *deadline, ready: make(chan struct{}), out: newFrames(os.Stdout)}
	go d.connect(flags.Args())
	eachFrame(os.Stdin, func(m *rpc.Message) { go d.serve(m) })
	select {
	case <-d.ready:
		if d.session != nil {
			d.session.Close()
		}
	default:
	}
	return 0
}

type direct struct {
	deadline time.Duration
	out      *frames

	ready   chan struct{} // closed once session or failure is set
	session *mcp.ClientSession
	failure error
}

func (d *direct) connect(target []string) {
	defer close(d.ready)
	var t mcp.Transport
	if strings.HasPrefix(target[0], "http") {
		t = &mcp.StreamableClientTransport{Endpoint: target[0]}
	} else {
		cmd := exec.Command(target[0], target[1:]...)
		cmd.Stderr = os.Stderr
		t = &mcp.CommandTransport{Command: cmd}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "direct", Version: "1"}, nil)
	ctx, stop := context.WithTimeout(context.Background(), d.deadline)
	defer stop()
	d.session, d.failure = client.Connect(ctx, t, nil)
}

func (d *direct) serve(m *rpc.Message) {
	if !m.IsRequest() {
		return
	}
	switch m.Method {
	case "initialize":
		d.out.send(rpc.Answer(m.ID, map[string]any{
			"protocolVersion": rpc.Legacy, "serverInfo": map[string]any{"name": "direct", "version": "1"},
			"capabilities": map[string]any{"tools": map[string]any{}},
		}))
	case "tools/call", "tools/list":
		d.out.send(d.forward(m))
	default:
		d.out.send(rpc.Refuse(m.ID, -32601, "method not found: %s", m.Method))
	}
}

func (d *direct) forward(m *rpc.Message) *rpc.Message {
	ctx, stop := context.WithTimeout(context.Background(), d.deadline)
	defer stop()
	select {
	case <-d.ready:
	case <-ctx.Done():
		return rpc.Refuse(m.ID, -32000, "not sent: still connecting")
	}
	if d.failure != nil {
		// The application knows that it never had a session to call on.
		return rpc.Refuse(m.ID, -32000, "not sent: %v", d.failure)
	}
	var result any
	var err error
	if m.Method == "tools/list" {
		result, err = d.session.ListTools(ctx, nil)
	} else {
		params := new(mcp.CallToolParams)
		var p struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Meta      map[string]any  `json:"_meta"`
		}
		json.Unmarshal(m.Params, &p)
		params.Name, params.Arguments, params.Meta = p.Name, p.Arguments, p.Meta
		result, err = d.session.CallTool(ctx, params)
	}
	if err != nil {
		var wire *jsonrpc.Error
		if errors.As(err, &wire) {
			return rpc.Refuse(m.ID, int(wire.Code), "%v", err)
		}
		return rpc.Refuse(m.ID, -32603, "%v", err)
	}
	return rpc.Answer(m.ID, result)
}
