package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/raw"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// ids that software likes to turn into something else.
var ids = []string{
	`1`, `0`, `-1`, `9007199254740993`, `-9223372036854775808`, `18446744073709551615`,
	`123456789012345678901234567890`, `"1"`, `""`, `"caf\u00e9"`, `"café"`, `"\"quoted\" \\ \/"`,
	`"9007199254740993"`, `"a very long one 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789"`,
}

// odd is an argument object that does not survive a decode and encode.
const odd = `{"big":9007199254740993,"one":1.0,"exp":1E+2,"a":1,"A":2,"e":"caf\u00e9 \ud83d\ude00 \/ <&>", "space" : [ 1 ,2 ],"vendor":{"deep":[[[{}]]]},"null":null}`

func lossless(ctx context.Context, w *world) ([]finding, error) {
	server, err := w.rig.Go(ctx, rig.Lossless)
	if err != nil {
		return nil, err
	}
	listening, addr, err := child.ServeHTTP(ctx, []string{server, "-http", "ADDR"})
	if err != nil {
		return nil, err
	}
	defer listening.Stop()
	url := "http://" + addr + "/mcp"

	var all []finding
	for _, era := range []struct {
		name   string
		script script
	}{{"legacy", legacyScript}, {"modern", modernScript}} {
		onStdio, err := playAll(ctx, era.script,
			w.stdio(era.name+", stdio direct", server),
			w.run(era.name+", stdio → run → stdio", "--", server),
			w.front(era.name+", HTTP → run → stdio", "--", server))
		if err != nil {
			return nil, err
		}
		onHTTP, err := playAll(ctx, era.script,
			overHTTP(era.name+", HTTP direct", url),
			w.front(era.name+", HTTP → run → HTTP", url),
			w.run(era.name+", stdio → run → HTTP", url))
		if err != nil {
			return nil, err
		}
		all = append(append(all, onStdio...), onHTTP...)
	}
	return all, nil
}

func legacyScript(ctx context.Context, p *player) {
	p.call(ctx, "initialize", `"init"`, "initialize", raw.Initialize)
	p.notify("notifications/initialized", "")
	common(ctx, p, func(params string) string { return params })
	p.call(ctx, "requests to the client", `"asking"`, "tools/call", `{"name":"ask","arguments":{}}`)
	p.notify("notifications/vendor/thing", odd)
	p.notify("notifications/roots/list_changed", "")
	p.call(ctx, "what was heard", `77`, "tools/call", `{"name":"heard","arguments":{}}`)
	p.call(ctx, "ping", `78`, "ping", "")
}

func modernScript(ctx context.Context, p *player) {
	modern := func(params string) string {
		return params[:len(params)-1] + "," + raw.ModernMeta + "}"
	}
	p.call(ctx, "discover", `"discover"`, "server/discover", `{`+raw.ModernMeta+`}`)
	common(ctx, p, modern)
	p.call(ctx, "first round", `"round 1"`, "tools/call", modern(`{"name":"ask","arguments":{}}`))
	p.call(ctx, "second round", `"round 2"`, "tools/call",
		modern(`{"name":"ask","arguments":{},"requestState":"b\u0061ck/9007199254740993","inputResponses":{"who":{"action":"accept","content":{"n":9007199254740993,"one":1.0},"vendorAnswer":1.0}}}`))
	p.call(ctx, "listen", `9007199254740995`, "subscriptions/listen", modern(`{"notifications":{"toolsListChanged":true},"vendorFilter":1.0}`))
}

// common is what both eras have. The era is put into params.
func common(ctx context.Context, p *player, era func(params string) string) {
	p.call(ctx, "tools/list", `2`, "tools/list", era(`{"vendorCursor":9007199254740993}`))
	for _, c := range []string{"numbers", "unicode", "vendor", "whitespace", "repeated", "empty", "nested"} {
		p.call(ctx, "say "+c, `3`, "tools/call", era(fmt.Sprintf(`{"name":"say","arguments":{"case":%q}}`, c)))
	}
	for _, id := range ids {
		p.call(ctx, "id "+id, id, "tools/call", era(`{"name":"echo","arguments":`+odd+`,"vendorParam":[1.0]}`))
	}
	p.call(ctx, "vendor method", `4`, "vendor/echo", era(`{"anything":`+odd+`}`))
	p.call(ctx, "unknown method", `5`, "vendor/unknown", era(`{"anything":1.0}`))
	p.call(ctx, "error", `6`, "tools/call", era(`{"name":"fail","arguments":{}}`))
	for _, token := range []string{`9007199254740993`, `"caf\u00e9"`, `0`} {
		p.call(ctx, "notifications, token "+token, `6`, "tools/call",
			withToken(era(`{"name":"notify","arguments":{}}`), token))
	}
	p.call(ctx, "deep result", `7`, "tools/call", era(`{"name":"deep","arguments":{"depth":9000}}`))
	p.call(ctx, "20 MiB result", `8`, "tools/call", era(`{"name":"large","arguments":{"size":20971520}}`))
	p.call(ctx, "deep argument", `9`, "tools/call", era(`{"name":"echo","arguments":`+nested(4500)+`}`))
	p.call(ctx, "large argument", `10`, "tools/call", era(`{"name":"echo","arguments":{"text":"`+filler(4<<20)+`"}}`))
}

// withToken puts a progress token into _meta, whether or not there is one yet.
func withToken(params, token string) string {
	if before, after, ok := strings.Cut(params, `"_meta":{`); ok {
		return before + `"_meta":{"progressToken":` + token + `,` + after
	}
	return params[:len(params)-1] + `,"_meta":{"progressToken":` + token + `}}`
}
