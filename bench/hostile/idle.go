package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// idleHandlerFlag makes this program run as the idle handler.
const idleHandlerFlag = "-idle-handler"

// idleHandler is an HTTP server in another process that only answers the honest clients. Its answer times are the
// machine's; any more is the daemon's.
type idleHandler struct {
	address string
	cmd     *exec.Cmd
	input   io.Closer
}

func startIdle() (*idleHandler, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("idle handler: %w", err)
	}
	h := &idleHandler{cmd: exec.Command(self, idleHandlerFlag)}
	h.cmd.Stderr = os.Stderr
	if h.input, err = h.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("idle handler: %w", err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("idle handler: %w", err)
	}
	if err := h.cmd.Start(); err != nil {
		return nil, fmt.Errorf("idle handler: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.stop()
		return nil, fmt.Errorf("idle handler: it did not say where it listens: %w", err)
	}
	h.address = strings.TrimSpace(line)
	return h, nil
}

func (h *idleHandler) stop() {
	_ = h.input.Close()
	_ = h.cmd.Wait()
}

// serveIdle runs the idle handler. It ends when its standard input ends, so it never outlives the program that
// started it.
func serveIdle(in io.Reader, out, errs io.Writer) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(errs, "hostile: idle handler:", err)
		return 2
	}
	answer := []byte("{}\n")
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	})}
	go func() { _ = server.Serve(listener) }()
	fmt.Fprintln(out, listener.Addr())
	_, _ = io.Copy(io.Discard, in)
	_ = server.Close()
	return 0
}
