// Package front speaks MCP to clients, over stdio and over Streamable HTTP, in
// both eras.
//
// Frames come in from a client; each request becomes a call on the catalogue, and
// its reply goes back under the client's own id. What a server says on its own
// account goes to the client it is meant for.
package front
