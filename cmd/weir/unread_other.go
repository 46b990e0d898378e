//go:build !unix

package main

import "net"

// hasUnread is not known on this system.
func hasUnread(net.Conn) bool { return false }
