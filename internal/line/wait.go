package line

import (
	"context"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/fair"
)

// Flow names the callers that share a limit with other flows by weight.
type Flow = fair.Flow

// MaxWeight is the largest weight of a flow or a class.
const MaxWeight = fair.MaxWeight

// Waiter is a place in a line.
type Waiter struct {
	fair.Node[*Waiter]

	subject *Subject
	arrived int64
	done    chan struct{} // closed at the release
	err     error         // the error of the release
	lease   *Lease        // the lease of the slots that it acquires, or nil
}

// Turn is a request to wait for units.
type Turn struct {
	Cost    int64 // a cost of 0 does not wait
	Flow    Flow
	Weight  int64 // the flow's, up to MaxWeight; 0 means that of the class, or 1
	Longest int64 // the maximum wait; algorithm.Never means that only the context bounds it
	Lease   *Lease
}

// Lease is the identity that holds the slots of a turn.
type Lease struct {
	Identity uint64
	Acquired bool // the last granted turn acquired slots
}

// Check refuses a turn for its context, cost, class or weight alone.
func (q *Lines) Check(ctx context.Context, cost int64, class int, weight int64) error {
	if err := ctx.Err(); err != nil {
		return q.Count(err)
	}
	switch {
	case cost < 0:
		return invalid("cost", "%d is negative", cost)
	case weight < 0 || weight > MaxWeight:
		return invalid("weight", "%d is not within 1 and %d", weight, MaxWeight)
	case class < 0 || class >= max(1, len(q.Weights)):
		return invalid("class", "%d is not an index of %d weights", class, len(q.Weights))
	}
	return nil
}

// Alone returns the longest wait of a turn if the context sets no bound. Otherwise it returns algorithm.Never, and Join
// compares both.
func Alone(ctx context.Context, longest int64) int64 {
	if _, ok := ctx.Deadline(); ok {
		return algorithm.Never
	}
	return longest
}

// Join takes the cost at once if no caller waits and the cost fits. Otherwise it adds the caller to the line of s,
// and the caller calls Await without the lock. Without a waiter and an error, the cost was taken. The caller holds
// the lock.
func (q *Lines) Join(ctx context.Context, s *Subject, now int64, t Turn) (*Waiter, error) {
	if capacity := s.algorithm.Capacity(); t.Cost > capacity {
		return nil, q.Count(&Refusal{End: TooLarge, Cost: t.Cost, Capacity: capacity})
	}
	waiting := s.advance(now)
	if t.Cost == 0 || s.line == nil && s.takeTurn(now, t) {
		return nil, nil
	}
	if s.line == nil {
		s.refused(now, t.Cost)
	}
	if err := q.refuse(ctx, s, now, t); err != nil {
		return nil, q.Count(err)
	}
	l := q.lineOf(s, now)
	w := &Waiter{subject: s, arrived: l.arrival(now), done: make(chan struct{}), lease: t.Lease}
	w.Cost = t.Cost
	l.push(w, t.Flow, t.Weight)
	if !waiting || !l.single() {
		l.advance(now)
	}
	return w, nil
}

// takeTurn takes a turn that needs no delay.
func (s *Subject) takeTurn(now int64, t Turn) (taken bool) {
	if s.algorithm.Wait(s.State, now, t.Cost) > 0 || algorithm.Delays(s.algorithm) && algorithm.UntilDue(s.algorithm, s.State, now, t.Cost) > 0 {
		return false
	}
	s.spend(now, t.Cost, t.Lease)
	return true
}

// refuse returns why a turn must not join the line: the line is full, or the wait is longer than the
// caller's. Slots may be released at any time, so a wait for slots is refused only for callers that cannot wait at
// all.
func (q *Lines) refuse(ctx context.Context, s *Subject, now int64, t Turn) error {
	if s.line != nil && s.line.full() {
		return ErrFull
	}
	bound, deadline := t.Longest, false
	if end, ok := ctx.Deadline(); ok {
		if left := int64(time.Until(end)); left < bound {
			bound, deadline = left, true
		}
	}
	if bound == algorithm.Never && !algorithm.Delays(s.algorithm) || bound > 0 && algorithm.Leases(s.algorithm) {
		return nil
	}
	need, room := s.turnIn(now, t)
	if !room {
		return ErrFull
	}
	if need > bound {
		return &Refusal{End: Late, Need: need, Bound: bound, Deadline: deadline}
	}
	return nil
}

// turnIn returns the wait of a turn without newcomers, and whether a limit with a queue of its own has room for it.
func (s *Subject) turnIn(now int64, t Turn) (wait int64, room bool) {
	state, from := s.State, now
	if s.line != nil {
		state, from = s.line.tail(now)
	}
	if algorithm.Delays(s.algorithm) && s.algorithm.Wait(state, now, t.Cost) > 0 {
		return 0, false
	}
	if s.line != nil {
		state, from = s.line.planBefore(now, t)
	}
	return algorithm.AddSaturating(from-now, algorithm.UntilDue(s.algorithm, state, from, t.Cost)), true
}

// Await waits until w is released, the context ends or the longest wait is over. It needs no lock. Without an error,
// the cost was taken.
func (q *Lines) Await(ctx context.Context, w *Waiter, longest int64) error {
	var over <-chan time.Time // never ready without a bound
	if longest < algorithm.Never {
		timer := time.NewTimer(time.Duration(longest))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-w.done:
		return q.Count(w.err)
	case <-ctx.Done():
		return q.Count(q.giveUp(w, ctx.Err()))
	case <-over:
		return q.Count(q.giveUp(w, &Refusal{End: Late, Need: algorithm.Never, Bound: longest}))
	}
}

// Sleep sleeps. It returns the error of the context if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// giveUp removes w from its line, unless it was released meanwhile.
func (q *Lines) giveUp(w *Waiter, why error) error {
	q.Lock.Lock()
	defer q.Lock.Unlock()
	now := q.now()
	if w.Queued() {
		w.subject.line.advance(now) // the turn may have come at this instant
	}
	if w.Queued() {
		w.subject.line.withdraw(w, now)
		return why
	}
	<-w.done
	return w.err
}
