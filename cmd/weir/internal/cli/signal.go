package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signalled is the cancellation cause of a context that a signal ended.
type signalled struct{ signal syscall.Signal }

func (e *signalled) Error() string { return e.signal.String() }

// UntilSignal returns a context that ends at SIGINT or SIGTERM. A second signal ends the process. It turns a broken
// pipe into an error of Write, so that the program can clear progress from the terminal before it ends.
func UntilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			number, _ := s.(syscall.Signal)
			cancel(&signalled{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		cancel(nil)
	}
}

// Interrupted returns the Exit of a filter that a signal or the end of its reader has ended, or nil for another error.
func Interrupted(err error) error {
	if s, ok := errors.AsType[*signalled](err); ok {
		return Exit(128 + int(s.signal))
	}
	if errors.Is(err, syscall.EPIPE) {
		return Exit(128 + int(syscall.SIGPIPE))
	}
	return nil
}
