//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package filelock

import (
	"errors"
	"os"
)

// ErrLocked is never returned here.
var ErrLocked = errors.New("locked")

// Try fails, because this system has no locks that end with their process.
func Try(*os.File) error { return errors.ErrUnsupported }
