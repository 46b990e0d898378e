package testprocess

import (
	"net"
	"strconv"
	"testing"
)

// Tests of several packages run at once. A port that one of them has got stays its own while no server listens there.
func TestAFreePortIsThatOfOneProcess(t *testing.T) {
	address := "127.0.0.1:" + strconv.Itoa(FreePort(t))
	for range 2 { // a server starts, ends and starts again
		server, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = server.Close()
	}
	if other, err := net.ListenPacket("udp", address); err == nil {
		_ = other.Close()
		t.Errorf("another process gets %s, too", address)
	}
}
