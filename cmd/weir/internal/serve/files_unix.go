//go:build unix

package serve

import (
	"io/fs"
	"os"
	"syscall"
)

// openFiles returns the number of files that this process may have open. The Go runtime has already raised the soft
// limit to the hard limit.
func openFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0, false
	}
	return uint64(limit.Cur), true
}

// ownedByThisUser reports whether a file belongs to the user of this process.
func ownedByThisUser(info fs.FileInfo) bool {
	file, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(file.Uid) == os.Getuid()
}
