package main

import (
	"net"
	"strings"
	"testing"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

// The echo admits every call, and says the same each time.
func TestAServerThatDoesNotCountFailsTheRun(t *testing.T) {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	service.RegisterRateLimitServiceServer(server, echoer{})
	go func() { _ = server.Serve(on) }()
	defer server.Stop()

	if err := refusesAbove(t.Context(), on.Addr().String(), "k"); err == nil || !strings.Contains(err.Error(), "to call 6 under a limit of 5, want OVER_LIMIT") {
		t.Errorf("a server that refuses nothing gives error %v", err)
	}
	clients, end, err := dial(on.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ask, own := counted(clients[0], 15), keys/sharers+1 // callers 0 to 15 have one key more than the rest
	for range own {
		if err := ask(t.Context()); err != nil {
			t.Fatalf("the first call of a key gives error %v", err)
		}
	}
	if err := ask(t.Context()); err == nil || !strings.Contains(err.Error(), "want an admission with 999998 left") {
		t.Errorf("a second call of a key that is not counted gives error %v", err)
	}
}
