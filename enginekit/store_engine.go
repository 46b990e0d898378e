package enginekit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// This file makes calls over a store. Each decision is a question (store_question.go). Questions queue until the rows of
// their keys are free (store_queue.go), and leave together in a flight. It decides them, swaps the rows and answers the
// callers (store_flight.go). store_row.go has the bytes of a row, store_hold.go the slots of reservations, and
// store_sweep.go deletes what has ended.

// NewStore returns an engine over a store. It makes calls of all operations, renews the slots of reservations and recognises
// identities.
//
// A decision on rows that the engine has written last takes one Swap. Callers for the same rows share it: one flight decides
// all of them, in order, and swaps the last states. A swap that fails tells the engine the rows that it missed. The
// engine decides at an instant that the store's clock has certainly passed: that of its last answer, and the time since then.
func NewStore(s Store, o StoreOptions) *StoreEngine {
	e := &StoreEngine{store: s, options: o.withDefaults(), rows: map[string]*row{}}
	e.locker, _ = s.(Locker)
	e.sweeper, _ = s.(Sweeper)
	e.Engine = weir.Kit.EngineOf(e.do, func(rules ...*weir.Rule) error { return Check(rules, e.holds) })
	return e
}

// StoreEngine is a weir.Engine over a [Store]. It is safe for concurrent use. Use NewStore.
type StoreEngine struct {
	weir.Engine
	store   Store
	locker  Locker  // nil if the store locks nothing
	sweeper Sweeper // nil if rows expire on their own
	options StoreOptions
	created atomic.Int64 // rows since the last sweep
	sweeps  struct {
		sync.Mutex
		after string
	}

	mu      sync.Mutex
	rows    map[string]*row
	queue   []*question
	flights int
	anchor  anchor
}

// Store returns the store of the engine, for programs that keep rows of their own beside the limits. Their keys begin with a
// NUL byte, which no key of a limit does.
func (e *StoreEngine) Store() Store { return e.store }

var (
	_ weir.Engine     = (*StoreEngine)(nil)
	_ weir.SlotKeeper = (*StoreEngine)(nil)
	_ Renewer         = (*StoreEngine)(nil)
)

// anchor is the clock of the store in its last answer, and when that came.
type anchor struct {
	told int64
	came time.Time // zero without an answer
}

// Clock returns the Clock of the options, which layers around the engine use, too; nil for the store's clock.
func (e *StoreEngine) Clock() func() int64 { return e.options.Clock }

// now returns an instant that the store's clock has certainly passed, unless the store stepped back or is another one now:
// a swap at that instant then fails. The result is not known before the first answer.
func (e *StoreEngine) now() (now int64, known bool) {
	if e.options.Clock != nil {
		return e.options.Clock(), true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return algorithm.AddSaturating(e.anchor.told, int64(time.Since(e.anchor.came))), !e.anchor.came.IsZero()
}

// tell takes in the clock of an answer.
func (e *StoreEngine) tell(now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.anchor = anchor{now, time.Now()}
}

// holds refuses limits with too many entries.
func (e *StoreEngine) holds(r *weir.Rule) error {
	var problems []error
	for i, l := range r.Limits() {
		if n := entriesOf(weir.Kit.Compiled(r).Parts[i].Algorithm); n > e.options.MaxEntries {
			problems = append(problems, &weir.LimitError{Limit: l.String(), Field: "count", Code: weir.CodeEngine,
				Reason: fmt.Sprintf("%d is above %d, the most entries of a row (%s)", n, e.options.MaxEntries, e.options.Name)})
		}
	}
	return errors.Join(problems...)
}

// entriesOf returns how many entries a limit keeps of a key.
func entriesOf(a algorithm.Algorithm) int64 {
	switch a.(type) {
	case *algorithm.SlidingLog, *algorithm.RateGate, *algorithm.Concurrency:
		return a.Capacity()
	}
	return 0
}

// most is the largest number of entries of a rule's limits.
type most struct{ entries int64 }

func mostOf(r *weir.Rule) *most {
	m := &most{}
	for i := range weir.Kit.Compiled(r).Parts {
		m.entries = max(m.entries, entriesOf(weir.Kit.Compiled(r).Parts[i].Algorithm))
	}
	return m
}

// do makes one call.
func (e *StoreEngine) do(ctx context.Context, c weir.Call) (weir.Answer, error) {
	ctx, cancel := Bound(ctx, &c)
	defer cancel()
	switch c.Op {
	case weir.OpReserve:
		return weir.Kit.Reserve(ctx, e, c)
	case weir.OpReserveAhead:
		a, err := e.newBooking(ctx, c)
		if err != nil {
			return weir.Answer{}, err
		}
		if _, err := e.answer(ctx, a, c); err != nil {
			return weir.Answer{}, err
		}
		r := e.result(a)
		return weir.Answer{Decision: r.Decision, Reservation: r.Reservation}, nil
	case weir.OpEach:
		return weir.Answer{}, e.each(ctx, c.Each)
	case weir.OpTake, weir.OpTakeUpTo, weir.OpPeek, weir.OpRecord, weir.OpReturn, weir.OpReset:
		a, err := e.newCall(ctx, c)
		if err != nil {
			return weir.Answer{}, err
		}
		return e.answer(ctx, a, c)
	}
	return weir.Answer{}, weir.Kit.Unsupported(c.Op, "cannot be made by this engine")
}

// newCall checks a call and returns its ask.
func (e *StoreEngine) newCall(ctx context.Context, c weir.Call) (*question, error) {
	if err := CheckIdentity(c.Op, c.Identity); err != nil {
		return nil, err
	}
	named := c
	c.Identity = ""
	call, err := mergedOf(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, q := range c.Requests {
		if Keep(q.Rule, mostOf).entries > e.options.MaxEntries {
			return nil, e.holds(q.Rule)
		}
	}
	verb := c.Op
	if verb == weir.OpTakeUpTo {
		verb = weir.OpTake
	}
	a, err := e.newQuestion(verb, call)
	if err != nil {
		return nil, err
	}
	a.identify(&named)
	return a, nil
}

// answer waits for the decision of an ask.
func (e *StoreEngine) answer(ctx context.Context, a *question, c weir.Call) (weir.Answer, error) {
	if a.call.stateless() {
		a.answer = a.decide(0)
	} else {
		e.enter(a)
		if err := e.wait(ctx, a); err != nil {
			return weir.Answer{}, err
		}
	}
	answer := weir.Answer{Decision: a.answer}
	if a.answer.Allowed {
		answer.Taken = a.call.taken(c.Requests)
	}
	if c.Op == weir.OpTakeUpTo && a.answer.Allowed {
		answer.Times = min(max(a.call.Times, 1), c.Most)
	}
	return answer, nil
}

// each makes the calls of a batch, which share flights.
func (e *StoreEngine) each(ctx context.Context, batch *weir.Batch) error {
	if batch == nil {
		return nil
	}
	if err := weir.Kit.CheckEach(batch.Calls, batch.Results); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return CannotDecide(weir.OpEach, err)
	}
	asks := make([]*question, len(batch.Calls))
	var entering []*question
	for i := range batch.Calls {
		result := &batch.Results[i]
		if result.Err != nil {
			continue
		}
		a, err := e.inEach(ctx, batch.Calls[i])
		switch {
		case err != nil:
			result.Err = err
		case a.call.stateless():
			*result = e.result(a)
		default:
			asks[i], entering = a, append(entering, a)
		}
	}
	e.enter(entering...)
	for i, a := range asks {
		if a == nil {
			continue
		}
		if err := e.wait(ctx, a); err != nil {
			batch.Results[i].Err = err
		} else {
			batch.Results[i] = e.result(a)
		}
	}
	return nil
}

// inEach returns the question of a call of a batch.
func (e *StoreEngine) inEach(ctx context.Context, c weir.Call) (*question, error) {
	if c.Op == weir.OpReserveAhead {
		return e.newBooking(ctx, c)
	}
	a, err := e.newCall(ctx, c)
	if err == nil {
		a.requests = c.Requests
	}
	return a, err
}

// result returns the answer to a question that was decided.
func (e *StoreEngine) result(a *question) weir.Result {
	if a.call.stateless() {
		a.answer = a.decide(0)
	}
	if b := a.booking; b != nil {
		taken := b.call
		taken.Taken = []int64{b.booked[0].Due}
		return weir.Result{Decision: a.answer, Reservation: weir.Kit.Granted(e, time.Time{}, a.answer, b.withdraw, taken)}
	}
	r := weir.Result{Decision: a.answer}
	if a.call.Op == weir.OpTake && a.answer.Allowed {
		r.Taken = a.call.taken(a.requests)
	}
	return r
}
