//go:build !unix

package main

import "os"

// saveSignals delivers nothing: there is no signal to ask with.
func (f *stateFile) saveSignals() (asked <-chan os.Signal) { return nil }
