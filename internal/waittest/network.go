// Package waittest tests the promises of waiting with random schedules for the processes of any engine. It has a server
// and a network in memory for tests in virtual time.
package waittest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
)

// Network delays and fails the calls of a process. A nil function does nothing.
type Network struct {
	Way  func() time.Duration // from the process to the server, and back
	Lose func() bool          // the answer
	Deaf func() bool          // signals
	Down func() bool          // calls fail before they reach the server
}

// Call passes a call through the network to do, and its answer back.
func (n Network) Call(ctx context.Context, c weir.Call, do func(context.Context, weir.Call) (weir.Answer, error)) (weir.Answer, error) {
	if n.Down != nil && n.Down() {
		return weir.Answer{}, Away{}
	}
	if err := n.Pass(ctx); err != nil {
		return weir.Answer{}, Lost{Err: err}
	}
	a, err := do(context.WithoutCancel(ctx), c)
	if n.Lose != nil && n.Lose() {
		_ = n.Pass(ctx)
		return weir.Answer{}, Lost{Err: context.DeadlineExceeded}
	}
	if passed := n.Pass(ctx); passed != nil {
		return weir.Answer{}, Lost{Err: passed}
	}
	return a, err
}

// Pass takes the time of one way.
func (n Network) Pass(ctx context.Context) error {
	if n.Way == nil {
		return nil
	}
	select {
	case <-time.After(n.Way()):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Around returns the engine behind the network.
func (n Network) Around(e weir.Engine) weir.Engine {
	return weir.Wrap(e, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		return n.Call(ctx, c, func(ctx context.Context, _ weir.Call) (weir.Answer, error) { return next(ctx, c) })
	})
}

// Between returns a random time of a network. Its generator is one that goroutines may share.
func Between(random *rand.Rand, from, to time.Duration) func() time.Duration {
	return func() time.Duration { return from + time.Duration(random.Int64N(int64(to-from+1))) }
}

// Away is the error of a call that did not reach the server.
type Away struct{}

func (Away) Error() string            { return "the engine is away" }
func (Away) Unavailable() bool        { return true }
func (Away) WasCounted() weir.Counted { return weir.CountedNo }

// Lost is the error of a call whose answer was lost.
type Lost struct{ Err error }

func (l Lost) Error() string   { return "the answer was lost: " + l.Err.Error() }
func (l Lost) Unwrap() error   { return l.Err }
func (Lost) Unavailable() bool { return true }
