// Package main serves the streams of kubectl exec and port-forward for the local cluster's container runtime.
//
// The runtime prepares a stream by a POST of the CRI request as JSON to /exec or /portforward on the control socket; the
// answer is the URL, valid once, that the kubelet connects its client to. In those requests ContainerId is the path of a
// process specification for the runtime's init program, and PodSandboxId the path of the pod's network namespace.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
)

func main() {
	control := flag.String("control", "", "unix socket for the runtime's requests")
	flag.Parse()
	if err := run(*control, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

// run serves until one of the two servers fails.
func run(control string, initCommand []string) error {
	if control == "" || len(initCommand) == 0 {
		return errors.New("usage: streamer -control SOCKET -- INIT_PROGRAM ARGS")
	}
	config := streaming.DefaultConfig
	config.Addr = "127.0.0.1:0"
	server, err := streaming.NewServer(config, streams{initCommand: initCommand})
	if err != nil {
		return fmt.Errorf("streaming server: %w", err)
	}
	if err := os.Remove(control); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove an earlier control socket: %w", err)
	}
	listener, err := net.Listen("unix", control)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	failed := make(chan error, 2)
	go func() { failed <- server.Start(true) }()
	go func() { failed <- http.Serve(listener, controlHandler(server)) }()
	return <-failed
}

// controlHandler answers the runtime's requests with URLs of prepared streams.
func controlHandler(server streaming.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exec", func(w http.ResponseWriter, r *http.Request) {
		request := &runtimeapi.ExecRequest{}
		if decode(w, r, request) {
			answer, err := server.GetExec(request)
			reply(w, answer.GetUrl(), err)
		}
	})
	mux.HandleFunc("POST /portforward", func(w http.ResponseWriter, r *http.Request) {
		request := &runtimeapi.PortForwardRequest{}
		if decode(w, r, request) {
			answer, err := server.GetPortForward(request)
			reply(w, answer.GetUrl(), err)
		}
	})
	return mux
}

func decode(w http.ResponseWriter, r *http.Request, request any) bool {
	if err := json.NewDecoder(r.Body).Decode(request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func reply(w http.ResponseWriter, url string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := fmt.Fprint(w, url); err != nil {
		log.Printf("answer not delivered: %v", err)
	}
}
