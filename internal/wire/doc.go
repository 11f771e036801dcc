// Package wire treats one MCP message as the bytes it arrived in.
//
// Bytes come in from a pipe or an HTTP body; a [Message] comes out: the same
// bytes, checked against the whole JSON grammar in one pass, with the places of
// its envelope members remembered. Nothing is decoded that nobody asked for.
// When something has to change, such as an id, that one member is spliced and
// every other byte is left as it was, so unknown fields, big integers, key order
// and white space survive the journey.
//
// The package also frames: lines for stdio ([LineReader], [LineWriter]) and
// server-sent events for HTTP ([EventReader], [AppendEvent]).
package wire
