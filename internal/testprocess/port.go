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

// given holds the ports that this process has handed out, each with a socket for UDP on it, which the system ends with the process. So
// that no other process hands out the port, before a server listens there or while a killed one is about to start again.
var given sync.Map

// FreePort returns a port of the loopback interface on which no program listens for TCP. No other test gets it.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		address := "127.0.0.1:" + strconv.Itoa(port)
		reserved, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			_ = reserved.Close()
			continue
		}
		_ = listener.Close()
		given.Store(port, reserved)
		return port
	}
	t.Fatalf("testprocess: no free port from %d to %d", firstPort, lastPort)
	return 0
}
