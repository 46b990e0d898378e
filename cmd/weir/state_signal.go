//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// saveSignals delivers SIGUSR1, which asks for a save, until stop is called.
// Without a file the signal does what it does by default.
func (f *stateFile) saveSignals() (asked <-chan os.Signal, stop func()) {
	if f.path == "" {
		return nil, func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	return signals, func() { signal.Stop(signals) }
}
