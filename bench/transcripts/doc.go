// Package transcripts holds conversations with real servers through mcpmend: what a
// client says and what it hears, both sides in one file. Run the test with -update
// to write down what is heard now.
package transcripts
