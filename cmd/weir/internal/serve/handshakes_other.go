//go:build !linux

package serve

import "net"

// refuseHandshakes does nothing on this system: a connection that is made while the listener closes may be reset
// before a request was read from it.
func refuseHandshakes(net.Listener) {}

func acceptWaiting(net.Listener) net.Conn { return nil }
