package decide

import (
	"context"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// holds are what this daemon has to give back.
type holds struct {
	room   places // in bytes
	mu     sync.Mutex
	timers map[uint64]func() // that end the wait for the end of a hold, by its lease
}

// The bounds of holds.
const (
	mostHeld  = 64 << 20 // bytes of the requests of all holds
	holdBytes = 512      // of a hold besides its requests
)

// add has a function called at the end of a life.
func (s *holds) add(lease uint64, size int, life time.Duration, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timers == nil {
		s.timers = map[uint64]func(){}
	}
	timer := time.AfterFunc(life, end)
	s.timers[lease] = func() {
		timer.Stop()
		s.room.leave(size)
	}
}

// forget forgets a hold that has nothing to give back.
func (s *holds) forget(lease uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if forget := s.timers[lease]; forget != nil {
		forget()
		delete(s.timers, lease)
	}
}

// againAfter is the time before a hold is given back again whose engine has failed.
const againAfter = time.Second

// newReturns returns what gives holds back again: as many as there may be.
func newReturns() *enginekit.Repeater {
	return enginekit.NewRepeater(enginekit.RepeaterOptions{Most: mostHeld / holdBytes, Pause: againAfter, LongestPause: againAfter})
}

// comeBack gives the units of a hold back that nobody has committed. While the engine fails it tries again, for as long as the
// engine is sure to know a commit.
func (d *Desk) comeBack(h *hold, held []weir.Request) {
	var failed error
	d.returns.Try(0, time.Now().Add(remembered-h.after()), func(answered func(done bool)) {
		ctx := context.Background() // the patience bounds each call
		failed = d.endHold(ctx, h, func() error {
			d.giveBack(ctx, h, held)
			return nil
		})
		answered(failed == nil || failed == ErrToken)
	}, func(end enginekit.Repeated) {
		if end != enginekit.RepeatedDone {
			d.failures.Warn(d.options.Log, "units of a hold that nobody committed stay spent", "error", failed)
		}
		d.holds.forget(h.Lease)
	})
}

// endHold settles a hold, or returns ErrToken if that has happened.
func (d *Desk) endHold(ctx context.Context, h *hold, settle func() error) error {
	mark, err := h.mark(over)
	if err != nil {
		return err
	}
	return d.once(ctx, mark, 0, false, settle)
}

// giveBack gives the units of a hold back, and reports whether they came back. If not, the reservation tries again by itself where it
// can, so no other caller may.
func (d *Desk) giveBack(ctx context.Context, h *hold, held []weir.Request) bool {
	err := weir.Kit.Granted(d.engine, time.Now(), weir.Decision{Allowed: true}, nil, weir.Call{Requests: held, Lease: h.Lease, Taken: h.Taken}).Cancel(ctx)
	if err != nil {
		d.failures.Warn(d.options.Log, "units of a hold may stay spent", "error", err)
	}
	return err == nil
}
