package cli

import (
	"os"
	"syscall"
)

// wasClosed reports whether the process was started without the stream, if that is /dev/null. In that case the Go
// runtime opens /dev/null for reading and writing in its place before main runs, and writes disappear without an error.
// A parent that opens /dev/null for reading and writing looks the same; a shell opens it for writing only.
func wasClosed(stream *os.File) bool {
	flags, _, failed := syscall.Syscall(syscall.SYS_FCNTL, stream.Fd(), syscall.F_GETFL, 0)
	return failed == 0 && flags&syscall.O_ACCMODE == syscall.O_RDWR
}
