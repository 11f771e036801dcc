package realclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// connectCodex asks codex's own server for its editors, which starts the MCP servers
// to list their tools. Stdout of the Output is the result, one JSON object.
func connectCodex(ctx context.Context, c *Client, s Setup) Output {
	ctx, stop := context.WithTimeout(ctx, s.timeout())
	defer stop()
	out := Output{Command: "codex app-server", kind: connection, Exit: -1}
	cmd, err := c.command(ctx, s, []string{"app-server"})
	if err != nil {
		out.Err = err
		return out
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		out.Err = err
		return out
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		out.Err = err
		return out
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		out.Err = err
		return out
	}
	result, talk := statusOfCodex(stdin, stdout, s.Project)
	out.Stdout, out.Took = string(result), time.Since(start)
	out.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	_ = stdin.Close()
	sweep(cmd) // it has said what we wanted to know
	_ = cmd.Wait()
	out.Stderr = stderr.String()
	if talk == nil {
		out.Exit = 0
	} else if !out.TimedOut {
		out.Err = fmt.Errorf("codex app-server: %w\n%s", talk, out.Stderr)
	}
	return out
}

// statusOfCodex holds the conversation and returns the status of the servers. It
// takes a thread in the folder to have the servers of the project, too.
func statusOfCodex(stdin io.Writer, stdout io.Reader, project string) (json.RawMessage, error) {
	scan := bufio.NewScanner(stdout)
	scan.Buffer(nil, 16<<20)
	id := 0
	ask := func(method string, params map[string]any) (json.RawMessage, error) {
		id++
		line, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
		if err != nil {
			return nil, err
		}
		if _, err := stdin.Write(append(line, '\n')); err != nil {
			return nil, err
		}
		for scan.Scan() {
			var reply struct {
				ID            int
				Method        string
				Result, Error json.RawMessage
			}
			if json.Unmarshal(scan.Bytes(), &reply) != nil || reply.Method != "" || reply.ID != id {
				continue
			}
			if reply.Error != nil {
				return nil, fmt.Errorf("%s: it answered %s", method, reply.Error)
			}
			return reply.Result, nil
		}
		return nil, fmt.Errorf("%s: %w", method, errors.Join(io.ErrUnexpectedEOF, scan.Err()))
	}
	if _, err := ask("initialize", map[string]any{"clientInfo": map[string]any{"name": "bench", "version": "1"}}); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(stdin, `{"method":"initialized"}`+"\n"); err != nil {
		return nil, err
	}
	begun, err := ask("thread/start", map[string]any{"cwd": project, "ephemeral": true})
	if err != nil {
		return nil, err
	}
	var session struct{ Thread struct{ ID string } }
	if err := json.Unmarshal(begun, &session); err != nil {
		return nil, err
	}
	return ask("mcpServerStatus/list", map[string]any{"threadId": session.Thread.ID})
}

// connectCopilot lets copilot answer one question with a model of ours, which says
// "ok" to everything. Stdout of the Output is its log of events.
func connectCopilot(ctx context.Context, c *Client, s Setup) Output {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Output{Exit: -1, Err: err}
	}
	model := &http.Server{Handler: http.HandlerFunc(sayOK)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = model.Serve(listener)
	}()
	defer func() {
		_ = model.Close()
		<-done
	}()
	s.Env = append(s.Env[:len(s.Env):len(s.Env)],
		"COPILOT_PROVIDER_BASE_URL=http://"+listener.Addr().String()+"/v1", "COPILOT_MODEL=gpt-4.1")
	return c.run(ctx, s, connection, []string{"-p", "hello", "--output-format", "json"})
}

// sayOK is a chat completion as OpenAI streams it.
func sayOK(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []string{
		`{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":null}`,
		`{"index":0,"delta":{},"finish_reason":"stop"}`,
	} {
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[%s]}\n\n", choice)
	}
	_, _ = io.Copy(w, strings.NewReader("data: [DONE]\n\n"))
}
