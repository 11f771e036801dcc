// Package tsclient holds a test: that our answers to calls which could not be
// finished reach a program built on the TypeScript SDK, whose client checks
// structuredContent against a tool's output schema even when the call failed.
package tsclient
