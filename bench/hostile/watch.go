package main

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/trial"
)

// exchange is an honest request and its answer. The daemon decided at some instant from sent to received, in
// nanoseconds since the start of the run.
type exchange struct {
	sent, received int64
	cost           int64
	answer         answer
	// loose is the additional uncertainty of the clock since the last exchange, in nanoseconds: a restart brings another
	// process's clock.
	loose int64
}

// admitted records the units of a key for the check of its bounds at the end. What the daemon's clock was loose by is a
// relief of each bound.
type admitted struct {
	limits   []weir.Limit
	used     []trial.Span
	loosened []trial.Span // the units are nanoseconds
	lastSent int64
}

func (a *admitted) add(e exchange) {
	if e.loose > 0 {
		a.loosened = append(a.loosened, trial.Span{From: a.lastSent, To: e.received, Units: float64(e.loose)})
	}
	a.lastSent = e.sent
	if e.answer.Allowed {
		a.used = append(a.used, trial.Span{From: e.sent, To: e.received, Units: float64(e.cost)})
	}
}

// check returns an error if some window admitted more than a bound. The client's window is at least as long as the
// daemon's. Where it does not know when windows begin, two of them may meet in a stretch.
func (a *admitted) check() error {
	for i, b := range trial.Bounds(a.limits, 1) {
		if b.Kind == trial.Window {
			b.Kind, b.Units = trial.Stretch, 2*b.Units
		}
		var reliefs []trial.Span
		for _, l := range a.loosened {
			if l.Units *= b.Rate; b.Kind != trial.Rate {
				l.Units = b.Units
			}
			reliefs = append(reliefs, l)
		}
		if worst := b.Worst(a.used, reliefs); worst.Over > trial.Tolerance {
			return fmt.Errorf("%.3f units more than %s allows were admitted from %d to %d ns", worst.Over, a.limits[i], worst.From, worst.To)
		}
	}
	return nil
}

// checkBounds checks the bounds of all keys that one client uses.
func (w *world) checkBounds() {
	for _, f := range w.followers {
		if err := f.admitted.check(); err != nil {
			w.Break(promiseBounds, "%s, key %q: %v", f.rule, f.key, err)
		}
	}
}
