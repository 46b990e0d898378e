//go:build !unix

package main

import "os"

// saveSignals returns nil, because this system has no signal for a save.
func (f *stateFile) saveSignals() (asked <-chan os.Signal) { return nil }
