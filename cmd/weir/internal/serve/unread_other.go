//go:build !unix

package serve

import "net"

// hasUnread is not known on this system.
func hasUnread(net.Conn) bool { return false }
