package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/weirflow/weir/bench/internal/measure"
)

// idleHandlerFlag makes this program run as the idle handler.
const idleHandlerFlag = "-idle-handler"

// idleHandler is an HTTP server in another process that only answers the honest clients. Its answer times are the
// machine's; any more is the daemon's.
type idleHandler struct {
	address string
	stop    func()
}

func startIdle() (*idleHandler, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("idle handler: %w", err)
	}
	child, err := measure.StartChild[string, string](self, idleHandlerFlag)
	if err != nil {
		return nil, fmt.Errorf("idle handler: %w", err)
	}
	address, err := child.Ask("listen")
	if err != nil {
		child.Stop()
		return nil, fmt.Errorf("idle handler: %w", err)
	}
	return &idleHandler{address, child.Stop}, nil
}

// serveIdle runs the idle handler. It ends when its standard input ends, so it never outlives the program that
// started it.
func serveIdle(in io.Reader, out, errs io.Writer) int {
	err := measure.Serve(in, out, func(string) (string, error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "{}\n")
		})}
		go func() { _ = server.Serve(listener) }()
		return listener.Addr().String(), nil
	})
	if err != nil {
		fmt.Fprintln(errs, "hostile: idle handler:", err)
		return 2
	}
	return 0
}
