package serve

import (
	"net"
	"os"
	"syscall"
)

// refuseHandshakes makes the system ignore new connections to a listener, and lets those in progress finish. A client
// that it ignores tries again after a second and then finds the next daemon, or none. Otherwise a connection that is
// made while the listener closes would be reset.
func refuseHandshakes(l net.Listener) {
	const flags, syn = 13, 0x02 // in the TCP header
	dropSYN := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: flags},
		{Code: syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K, K: syn, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 1<<32 - 1},
	}
	//lint:ignore SA1019 its replacement is another dependency
	control(l, func(fd int) { _ = syscall.AttachLsf(fd, dropSYN) })
}

// acceptWaiting accepts a connection that waits in the system's queue. It returns nil if the queue is empty. Accept
// with a deadline cannot tell: when the process did not run until the deadline, it does not look.
func acceptWaiting(l net.Listener) (conn net.Conn) {
	control(l, func(fd int) {
		accepted, _, err := syscall.Accept4(fd, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		file := os.NewFile(uintptr(accepted), "connection")
		defer func() { _ = file.Close() }()
		conn, _ = net.FileConn(file)
	})
	return conn
}

// control calls f with the descriptor of a listener, if it has one.
func control(l net.Listener, f func(fd int)) {
	socket, ok := l.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
