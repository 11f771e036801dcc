// Package arguments checks the arguments of a tool call against the tool's
// schema, mends them when their meaning is certain, and explains them when it
// is not. Bytes come in; bytes, changes or words go out. It is made of pure
// functions: it sends nothing, loads nothing and remembers nothing but the
// schemas in a [Cache].
//
//	schema, err := arguments.Compile(tool.InputSchema)
//	result := schema.Repair(arguments.Call{Tool: "search", Arguments: raw, Risk: arguments.ReadOnly})
//	switch result.Outcome {
//	case arguments.Valid, arguments.Mended:
//		send(result.Arguments) // when valid, the very bytes that came in
//	default:
//		reply(arguments.Explain(arguments.Failure{Tool: "search", Schema: schema, Arguments: raw}).Text)
//	}
//
// # What is mended
//
// A call is mended only without loss: the inverse of a known encoding (JSON
// inside a string, the canonical text of a number, "true"), or the one declared
// name or value that equals what was sent after a fixed folding of case and
// separators. Only places the schema rejects are touched, and a change is kept
// only if the whole call is valid afterwards. Two different results that are
// both valid are no certainty, so neither is taken.
//
// Nothing is ever invented, clamped, rounded, trimmed, split, closed or merged,
// and no unknown key is dropped; what would be a guess becomes a hint in
// [Explain].
//
// # Schemas are other people's
//
// A schema is written by a server and may be hostile. Nothing it refers to is
// loaded; its size, depth and complexity are bounded, and so is the work of
// checking one call. What cannot be checked is not refused: a layer in the
// middle must not be stricter than the server behind it.
package arguments
