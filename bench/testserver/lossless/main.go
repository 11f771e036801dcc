// Command lossless is a server that says legal things which software between it
// and its client likes to damage: members nobody knows, at every level; integers
// above 2^53; 1.0; names that differ only in their Unicode form; deep and large
// results; whitespace where none is needed. It repeats what it was sent, byte for
// byte, so that both directions can be compared with and without a layer between.
//
//	lossless               on stdio, both eras
//	lossless -http ADDR    Streamable HTTP at /mcp, both eras
//
// It is written without an SDK, since an SDK would be the first to tidy up.
package main

import (
	"bufio"
	"flag"
	"log"
	"net/http"
	"os"
	"sync"
)

func main() {
	addr := flag.String("http", "", "serve Streamable HTTP at this address instead of stdio")
	flag.Parse()
	log.SetFlags(0)
	if *addr == "" {
		serveStdio()
		return
	}
	http.Handle("/mcp", &endpoint{sessions: map[string]*session{}})
	log.Fatal(http.ListenAndServe(*addr, nil))
}

func serveStdio() {
	var mu sync.Mutex
	out := bufio.NewWriter(os.Stdout)
	send := func(message []byte) {
		mu.Lock()
		defer mu.Unlock()
		out.Write(message)
		out.WriteByte('\n')
		if err := out.Flush(); err != nil {
			log.Fatal(err)
		}
	}
	s := newSession()
	var running sync.WaitGroup
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			running.Wait()
			return
		}
		m, err := parse(line)
		if err != nil {
			log.Fatalf("not JSON-RPC: %.200q", line)
		}
		if !s.take(m) {
			running.Go(func() { s.serve(m, send) })
		}
	}
}
