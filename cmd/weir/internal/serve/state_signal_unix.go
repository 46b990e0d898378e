//go:build unix

package serve

import (
	"os"
	"os/signal"
	"syscall"
)

// saveSignals returns a channel of SIGUSR1, which requests a save, until the process ends. Without a state file the
// signal keeps its effect.
func (f *stateFile) saveSignals() (asked <-chan os.Signal) {
	if f.path == "" {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	return signals
}

// reloadSignals returns a channel of SIGHUP, which requests a reload, until the process ends. Without rules in files
// the signal is ignored.
func reloadSignals(files bool) (again <-chan os.Signal) {
	if !files {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals
}
