package serve

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// Clients that connect without pause while the server stops are answered or refused, and none is reset.
func TestStopAnswersEveryConnectionThatWasMade(t *testing.T) {
	on, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, 0, patience)
	stopped, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.serve(stopped, on) }()
	var clients sync.WaitGroup
	var asked atomic.Int64
	for range 8 {
		clients.Go(func() {
			for connectAndAsk(t, on.Addr().String()) {
				if asked.Add(1) == 200 {
					stop()
				}
			}
		})
	}
	if err := <-ended; err != nil {
		t.Errorf("serve ended with %v, want nil", err)
	}
	clients.Wait()
}

// connectAndAsk returns false once connections are refused.
func connectAndAsk(t *testing.T, address string) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, peekHead+peekBody)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("a connection that was made got no answer: %v", err)
		return true
	}
	return answer.StatusCode == http.StatusOK
}
