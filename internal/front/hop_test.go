package front

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/guard"
)

// BenchmarkHop is one call through everything we do to it on stdio, with a server
// that is a plain script of ours: what is left in a profile is ours.
func BenchmarkHop(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			server, err := guard.New(guard.Spec{
				Command: []string{os.Args[0]},
				Env:     append(os.Environ(), fmt.Sprintf("FRONT_HOP_SERVER=%d", size)),
			}, guard.Options{})
			if err != nil {
				b.Fatal(err)
			}
			inR, inW, _ := os.Pipe()
			outR, outW, _ := os.Pipe()
			s := &Stdio{Catalogue: catalogue.Of(server), In: inR, Out: outW}
			go s.Serve(b.Context())
			answers := bufio.NewReaderSize(outR, 64<<10)
			ask := func(line string) {
				if _, err := inW.WriteString(line + "\n"); err != nil {
					b.Fatal(err)
				}
				if _, err := answers.ReadSlice('\n'); err != nil {
					b.Fatal(err)
				}
			}
			ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
			b.ReportAllocs()
			for b.Loop() {
				ask(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"blob","arguments":{"size":100}}}`)
			}
			_ = inW.Close()
			_ = server.Close(b.Context())
		})
	}
}

// serveHop answers every request with a text of the given size.
func serveHop(size int) {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	text := strings.Repeat("x", size)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		_, id, ok := strings.Cut(string(line), `"id":`)
		if !ok {
			continue
		}
		id, _, _ = strings.Cut(id, ",")
		fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","content":[{"type":"text","text":"%s"}]}}`+"\n", id, text)
	}
}
