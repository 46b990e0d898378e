//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// saveSignals delivers SIGUSR1 and SIGHUP, which ask for a save, until the process
// ends. Without a file they do what they did before.
func (f *stateFile) saveSignals() (asked <-chan os.Signal) {
	if f.path == "" {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGHUP)
	return signals
}
