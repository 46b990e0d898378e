//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package main

import (
	"errors"
	"os"
)

// errLocked is never returned here.
var errLocked = errors.New("locked")

// tryLock fails, because this system has no locks that end with their process.
func tryLock(*os.File) error { return errors.ErrUnsupported }
