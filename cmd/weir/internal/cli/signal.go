package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signalled is the cancellation cause of a context that a signal ended.
type Signalled struct{ signal syscall.Signal }

func (e *Signalled) Error() string { return e.signal.String() }

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
			cancel(&Signalled{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		cancel(nil)
	}
}
