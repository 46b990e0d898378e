//go:build unix

package serve

import (
	"os"
	"os/signal"
	"syscall"
)

// saveSignals returns a channel of SIGUSR1 and SIGHUP, which request a save, until the process ends. Without a state
// file the signals keep their effect.
func (f *stateFile) saveSignals() (asked <-chan os.Signal) {
	if f.path == "" {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGHUP)
	return signals
}
