package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are taken from below the range that systems draw the ports of outgoing
// connections from, so that a server can be killed and started on its port
// again without a stranger being there first.
const (
	firstPort = 20000
	lastPort  = 32000
)

// given are the ports that this process has handed out.
var given sync.Map

func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		_ = listener.Close()
		return port
	}
	t.Fatalf("redistest: no free port from %d to %d", firstPort, lastPort)
	return 0
}
