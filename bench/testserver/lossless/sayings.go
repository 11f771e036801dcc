package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// initialized agrees to the client's version, and adds what no version has.
func initialized(m *message) []byte {
	var p struct {
		ProtocolVersion json.RawMessage `json:"protocolVersion"`
	}
	if json.Unmarshal(m.Params, &p) != nil || p.ProtocolVersion == nil {
		p.ProtocolVersion = json.RawMessage(`"2025-11-25"`)
	}
	return fmt.Appendf(nil, `{"protocolVersion":%s,%s,"serverInfo":%s,"instructions":"caf\u00e9 `+"caf\u00e9"+`"}`,
		p.ProtocolVersion, capabilities, serverInfo)
}

const (
	capabilities = `"capabilities":{"logging":{},"tools":{"listChanged":true,"vendorTool":9007199254740993},"experimental":{"x":{"y":1.0}},"vendor":{"deep":[[1.0]]}}`
	serverInfo   = `{"name":"lossless","version":"1.0","title":"L\u00f6ssless","vendorBuild":18446744073709551615}`

	discovered = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28","2025-11-25"],` +
		capabilities + `,"_meta":{"io.modelcontextprotocol/serverInfo":` + serverInfo + `,"vendor/x":1.0},"vendorDiscover":[]}`

	failure = `{"code":-31999,"message":"caf\u00e9 <b>&</b>","data":{"big":9007199254740993,"one":1.0,"vendor":[null]},"vendorError":true}`

	inputRequired = `{"resultType":"input_required","vendorRound":1.0,"requestState":"b\u0061ck/9007199254740993","inputRequests":{` +
		`"who":{"method":"elicitation/create","params":{"message":"caf\u00e9","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"vendorAsk":1.0}}}}`
)

// tools is written in lines here, and sent as one, as stdio wants it.
var tools = strings.ReplaceAll(`{"tools":[
  {"name":"say","description":"caf\u00e9","inputSchema":{"type":"object","properties":{"case":{"type":"string","vendorHint":1.0}},"x-max":9007199254740993},"execution":{"taskSupport":"optional"},"vendorTool":{"a":1e2}},
  {"name":"echo","inputSchema":{"type":"object","maximum":9007199254740993},"annotations":{"readOnlyHint":true,"vendorHint":"y"}},
  {"name":"large","inputSchema":{"type":"object"}},{"name":"deep","inputSchema":{"type":"object"}},
  {"name":"fail","inputSchema":{"type":"object"}},{"name":"notify","inputSchema":{"type":"object"}},
  {"name":"ask","inputSchema":{"type":"object"}},{"name":"heard","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","if":{},"then":{}}}
],"resultType":"complete","ttlMs":0,"cacheScope":"private","vendorList":9007199254740993,"_meta":{"vendor/page":1.0}}`, "\n", "")

// sayings are results for the tool say. Each is legal JSON that a decode and
// encode round trip through ordinary types would change.
var sayings = map[string]string{
	"numbers": `{"content":[],"structuredContent":{"big":9007199254740993,"bigger":18446744073709551616,` +
		`"neg":-9007199254740993,"one":1.0,"exp":1E+2,"small":1e-7,"zero":-0,"long":0.10000000000000000000000001,` +
		`"huge":123456789012345678901234567890e10}}`,
	"unicode": `{"content":[{"type":"text","text":"caf\u00e9 ` + "caf\u00e9 cafe\u0301" + ` \ud83d\ude00 😀 \/ / <b>&amp;</b> \u2028 \u0000 \u001f \ud800"}],` +
		// Three members whose names look the same: composed, decomposed, and escaped.
		`"structuredContent":{` + "\"\u00e9\":1,\"e\u0301\":2," + `"\u00e9\u200b":3,` + "\"\u212a\":\"Kelvin\"," + `"K":"K"}}`,
	"vendor": `{"content":[{"type":"text","text":"t","vendorItem":{"n":9007199254740993},"annotations":{"priority":1.0,"vendor":[]}},` +
		`{"type":"vendor/unknown","payload":[1.0,{"a":null}]}],"isError":false,"vendorResult":[[],{}],"_meta":{"vendor/trace":"00-ab","n":1.0}}`,
	"whitespace": "{ \"content\" :\t[ ] ,   \"structuredContent\":{ \"a\" : [ 1 ,2,  3 ] }\t}  ",
	"repeated":   `{"content":[],"structuredContent":{"a":1,"a":2,"A":3}}`,
	"empty":      `{"content":[],"structuredContent":{"":"","\u0000":[]}}`,
	"nested":     `{"content":[],"structuredContent":{"id":"not the id","jsonrpc":"1.0","method":"x","result":{"id":7,"error":{}}}}`,
}

// echo returns the params it got, as bytes.
func echo(m *message) []byte {
	params := m.Params
	if params == nil {
		params = json.RawMessage(`null`)
	}
	return fmt.Appendf(nil, `{"content":[],"resultType":"complete","echo":%s}`, params)
}

func large(size int) []byte {
	// Not all one letter, so that a shifted or repeated piece shows.
	unit := []byte("0123456789abcdef caf\xc3\xa9 \\u00e9 \\\"quoted\\\" ")
	var b bytes.Buffer
	b.WriteString(`{"content":[{"type":"text","text":"`)
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%d ", n)
		b.Write(unit)
	}
	b.WriteString(`"}],"vendorTail":9007199254740993}`)
	return b.Bytes()
}

func deep(depth int) []byte {
	half := depth / 2
	return []byte(`{"content":[],"structuredContent":` +
		strings.Repeat(`{"d":[`, half) + `1.0` + strings.Repeat(`]}`, half) + `}`)
}

// notifications are those sent during a call, in this order.
func notifications(progressToken json.RawMessage, modern bool) []string {
	var all []string
	if progressToken != nil {
		for i := range 3 {
			all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d.0,"total":9007199254740993,"vendorStep":[1.0]}}`, progressToken, i))
		}
	}
	all = append(all,
		`{"method":"notifications/message","params":{"level":"info","data":{"n":9007199254740993,"one":1.0},"vendorLog":"caf\u00e9"},"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","method":"notifications/vendor/thing","params":{"n":1.0},"vendorEnvelope":{}}`,
	)
	if !modern { // 2026-07-28 has it only on the streams of those who listen
		all = append(all, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
	return all
}

// requests are those the tool ask sends to a legacy client.
var requests = []struct{ id, method, params string }{
	{`9007199254740993`, "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"caf\u00e9","vendorItem":1.0}}],"maxTokens":9007199254740993,"vendorAsk":1.0}`},
	{`"a\u00e9/\"quoted\""`, "elicitation/create", `{"message":"<b>&","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"vendorAsk":[]}`},
	{`"roots"`, "roots/list", `{"_meta":{"vendor/x":1.0}}`},
	{`-7`, "vendor/request", `{"anything":[9007199254740993,1.0]}`},
}

// listen acknowledges and reports two changes; then the stream ends, as nothing
// more will change.
func listen(m *message, send func([]byte)) []byte {
	for _, n := range []string{
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s,"vendor/x":1.0},"notifications":{"toolsListChanged":true},"vendorAck":9007199254740993}}`,
		`{"vendorEnvelope":1.0,"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"vendor/x":1.0,"io.modelcontextprotocol/subscriptionId":%s}}}`,
		`{"jsonrpc":"2.0","method":"notifications/vendor/changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"n":9007199254740993}}`,
	} {
		send(fmt.Appendf(nil, n, m.ID))
	}
	return []byte(`{"resultType":"complete","_meta":{"vendor/x":1.0}}`)
}
