package main

import (
	"os"
	"syscall"
)

// wasClosed says that the process was started without the stream. Go opens
// /dev/null in its place, for reading and writing, before any code of ours runs,
// and what is written vanishes without an error. The rare program that opens
// /dev/null in the same way for its children cannot be told apart; a shell opens
// it for writing only.
func wasClosed(stream *os.File) bool {
	if !isNull(stream) {
		return false
	}
	flags, _, failed := syscall.Syscall(syscall.SYS_FCNTL, stream.Fd(), syscall.F_GETFL, 0)
	return failed == 0 && flags&syscall.O_ACCMODE == syscall.O_RDWR
}
