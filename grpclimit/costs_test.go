package grpclimit_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/weirflow/weir/grpclimit"
)

// lostByPools are allocations that the race detector adds.
var lostByPools float64

// direct returns a function that makes one admitted call straight to the interceptor, and the number of calls that
// have reached the handler.
func direct(t testing.TB) (send func(), reached *int) {
	t.Helper()
	limited, err := grpclimit.PerClient("1000000000/s")
	if err != nil {
		t.Fatal(err)
	}
	var contexts []context.Context
	for i := range 256 {
		addr := &net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(i)), Port: 80}
		contexts = append(contexts, peer.NewContext(context.Background(), &peer.Peer{Addr: addr}))
	}
	info := &grpc.UnaryServerInfo{FullMethod: unaryMethod}
	reached = new(int)
	handler := func(context.Context, any) (any, error) {
		*reached++
		return nil, nil
	}
	sent := 0
	return func() {
		if _, err := limited.Unary(contexts[sent%len(contexts)], nil, info, handler); err != nil {
			t.Fatal(err)
		}
		sent++
	}, reached
}

func TestAnAdmittedCallAllocatesAtMostTwice(t *testing.T) {
	send, _ := direct(t)
	for range 300 {
		send()
	}
	if got := testing.AllocsPerRun(1000, send); got > 2+lostByPools {
		t.Errorf("%v allocations, want at most 2", got)
	}
}

func BenchmarkUnary(b *testing.B) {
	send, reached := direct(b)
	b.ReportAllocs()
	calls := 0
	for b.Loop() {
		send()
		calls++
	}
	if *reached != calls {
		b.Fatalf("%d of %d calls reached the handler, want all", *reached, calls)
	}
}
