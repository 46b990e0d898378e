package weir_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// The slow model has a queue as a slice, and each limit as its definition in rationals, without regard for speed. It
// shares no code with the package.

// slowState is the state of one limit.
type slowState interface {
	capacity() int64
	// earliest returns the exact instant from now on at which n may go ahead.
	earliest(from, n int64) *big.Rat
	// take spends n at that instant.
	take(from int64, at *big.Rat, n int64)
	give(now, n int64)
	set(now int64, limit weir.Limit)
	clone() slowState
}

// slowFamily is one kind of limit: how to draw one, the time of one unit, and how to change a limit.
type slowFamily struct {
	draw   func(*rand.Rand) (limit weir.Limit, unit int64)
	change func(*rand.Rand, weir.Limit) weir.Limit
	state  func(weir.Limit) slowState
}

type slowWaiter struct {
	id         int
	n, arrived int64
	max        time.Duration
}

// slowLine is a limit and its waiting callers.
type slowLine struct {
	family slowFamily
	limit  weir.Limit
	state  slowState
	queue  []slowWaiter
	since  int64 // the last change of the state
}

// advance releases the callers whose turn comes until now, and reports each with its time.
func (l *slowLine) advance(now int64, report func(id int, at int64, fits bool)) {
	for len(l.queue) > 0 {
		w := l.queue[0]
		if w.n > l.state.capacity() {
			l.queue = l.queue[1:]
			report(w.id, max(w.arrived, l.since), false)
			continue
		}
		from := max(w.arrived, l.since)
		exact := l.state.earliest(from, w.n)
		at := ceilRat(exact)
		if at > now {
			return
		}
		l.state.take(from, exact, w.n)
		l.since = at
		l.queue = l.queue[1:]
		report(w.id, at, true)
	}
}

// need returns how long a newcomer would wait if no other caller came.
func (l *slowLine) need(now, n int64) (need int64) {
	ahead := slowLine{state: l.state.clone(), queue: slices.Clone(l.queue), since: l.since}
	ahead.queue = append(ahead.queue, slowWaiter{id: -1, n: n, arrived: now})
	ahead.advance(1<<62, func(id int, at int64, _ bool) {
		if id == -1 {
			need = at - now
		}
	})
	return need
}

// room reports whether a leaky bucket takes n more behind its waiting callers.
func (l *slowLine) room(now, n int64) bool {
	if _, leaky := l.state.(*slowLeaky); !leaky {
		return true
	}
	tail := slowLine{state: l.state.clone(), queue: slices.Clone(l.queue), since: l.since}
	tail.advance(1<<62, func(int, int64, bool) {})
	return tail.state.(*slowLeaky).room(now, n)
}

func (l *slowLine) cancel(id int, now int64) (found bool) {
	for i, w := range l.queue {
		if w.id == id {
			l.queue = slices.Delete(l.queue, i, i+1)
			if i == 0 {
				l.since = now
			}
			return true
		}
	}
	return false
}

// advanceAll works like advance, and callers whose longest wait ends until now leave.
func (l *slowLine) advanceAll(now int64, p *played, report func(id int, at int64, fits bool)) {
	for {
		ends := now + 1
		var first slowWaiter
		for _, w := range l.queue {
			if w.max < time.Duration(ends-w.arrived) {
				ends, first = w.arrived+int64(w.max), w
			}
		}
		l.advance(min(now, ends), report)
		if ends > now {
			return
		}
		if l.cancel(first.id, ends) {
			p.outcome[first.id] = outcome(&weir.WaitError{Need: weir.Never}, 0)
			l.advance(ends, report)
		}
	}
}

// playOnModel is playOnLimiter on the model.
func playOnModel(family slowFamily, limit weir.Limit, events []event, start int64) played {
	l := &slowLine{family: family, limit: limit, state: family.state(limit)}
	p := played{outcome: map[int]string{}}
	report := func(id int, at int64, fits bool) {
		if p.outcome[id] = outcome(nil, time.Duration(at-start)); !fits {
			p.outcome[id] = outcome(weir.ErrNever, time.Duration(at-start))
		}
	}
	for _, e := range events {
		now := start + e.at
		l.advanceAll(now, &p, report)
		l.do(e, now, &p)
		l.advanceAll(now, &p, report)
	}
	l.advanceAll(start+int64(endOfSchedule)-1, &p, report)
	for _, w := range l.queue {
		p.outcome[w.id] = outcome(weir.ErrClosed, 0)
	}
	return p
}

func (l *slowLine) do(e event, now int64, p *played) {
	at := time.Duration(e.at)
	switch e.verb {
	case "arrive":
		if err := l.refuse(e, now); err != nil {
			p.outcome[e.id] = outcome(err, at)
			return
		}
		l.queue = append(l.queue, slowWaiter{e.id, e.n, now, e.max})
	case "cancel":
		if l.cancel(e.id, now) {
			p.outcome[e.id] = outcome(errCancelled, at)
		}
	case "allow":
		allowed := len(l.queue) == 0 && e.n <= l.state.capacity() &&
			l.state.earliest(now, e.n).Cmp(whole(now)) == 0
		if allowed {
			l.state.take(now, whole(now), e.n)
		}
		p.allowed = append(p.allowed, allowed)
	case "record":
		l.state.take(now, whole(now), e.n)
		l.since = now
	case "give":
		l.state.give(now, e.n)
		l.since = now
	case "reset":
		l.state = l.family.state(l.limit)
		l.since = now
	case "set":
		l.state.set(now, e.limit)
		l.limit = e.limit
		l.since = now
	}
}

func (l *slowLine) refuse(e event, now int64) error {
	switch {
	case e.n > l.state.capacity():
		return weir.ErrNever
	case !l.room(now, e.n):
		return weir.ErrQueueFull
	}
	if need := time.Duration(l.need(now, e.n)); need > e.max {
		return &weir.WaitError{Need: need, Bound: e.max}
	}
	return nil
}

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func frac(a, b int64) *big.Rat { return big.NewRat(a, b) }

func sum(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }

func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func less(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func later(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// ceilRat returns r rounded up; r is positive.
func ceilRat(r *big.Rat) int64 {
	num := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return num.Quo(num, r.Denom()).Int64()
}
