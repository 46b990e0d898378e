package testprocess

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are below the range that systems use for outgoing connections, so that a killed server can start on its port
// again.
const (
	firstPort = 20000
	lastPort  = 32000
)

// given holds the ports that this process has handed out.
var given sync.Map

// FreePort returns a port of the loopback interface that no program listens on.
func FreePort(t testing.TB) int {
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
	t.Fatalf("testprocess: no free port from %d to %d", firstPort, lastPort)
	return 0
}
