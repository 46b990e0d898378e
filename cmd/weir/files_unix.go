//go:build unix

package main

import "syscall"

// openFiles is how many files this process may have open at once. Go's runtime
// has raised the soft limit to the hard one before.
func openFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0, false
	}
	return uint64(limit.Cur), true
}
