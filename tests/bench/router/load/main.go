// Command load is both ends of the router's benchmark: an engine that costs next to nothing, and clients that measure.
//
// Both write each message with one system call and parse only what they need, so that the proxy between them is what is measured.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	mode := flag.String("mode", "", "engine or clients")
	address := flag.String("address", "127.0.0.1:0", "where to listen, or whom to ask")
	plan := Plan{}
	flag.StringVar(&plan.Key, "key", "", "API key that the clients send")
	flag.BoolVar(&plan.TLS, "tls", false, "ask over TLS; the certificate is not checked")
	flag.BoolVar(&plan.Stream, "stream", true, "ask for streams")
	flag.IntVar(&plan.Clients, "clients", 1, "requests in flight")
	flag.IntVar(&plan.Chunks, "chunks", 200, "tokens of an answer")
	flag.DurationVar(&plan.Gap, "gap", 10*time.Millisecond, "time between two tokens of a stream")
	flag.IntVar(&plan.Prompt, "prompt", 100, "bytes of the prompt")
	flag.DurationVar(&plan.Ramp, "ramp", 0, "time over which the clients start")
	flag.DurationVar(&plan.For, "for", 5*time.Second, "no request begins later than this")
	flag.Parse()
	var err error
	switch *mode {
	case "engine":
		err = serve(*address)
	case "clients":
		err = json.NewEncoder(os.Stdout).Encode(ask(*address, plan))
	default:
		err = fmt.Errorf("-mode must be engine or clients, not %q", *mode)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}
