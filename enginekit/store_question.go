package enginekit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// question is one decision that a caller waits for.
type question struct {
	call     *Merged
	verb     weir.Op // in errors
	rows     []*row  // the rows of the keys, each once
	at       []int   // the index of each part's row
	decide   func(now int64) weir.Decision
	identity string         // the name of the answer among the states of the first row; "" without an identity
	final    bool           // the identity names a refusal, too
	requests []weir.Request // the call's, not merged; only in a batch
	instant  int64          // when it is decided
	booking  *booking       // set for an OpReserveAhead

	answer weir.Decision
	err    error
	done   chan struct{} // receives once, at the answer
	place  place         // under the mutex of the engine
}

// place is where an ask is.
type place uint8

const (
	inQueue  place = iota
	inFlight       // but nothing was sent
	sent           // to the store, without an answer so far
	left           // its caller has gone
	answered
)

// newQuestion returns the ask of a checked call, which has at least one part.
func (e *StoreEngine) newQuestion(verb weir.Op, c *Merged) (*question, error) {
	a := &question{call: c, verb: verb, decide: c.Decide, done: make(chan struct{}, 1)}
	for i := range c.Parts {
		p := &c.Parts[i]
		if algorithm.Leases(p.algorithm) && p.algorithm.Endless() {
			if c.Lease == 0 && p.Request.Cost > 0 && (c.Op == weir.OpTake || c.Op == weir.OpRecord) {
				return nil, &weir.RequestError{Op: verb.String(), Rule: p.Request.Rule.Name(), Field: "lease",
					Reason: fmt.Sprintf("is missing: in a store use Reserve, which renews a lease of %v, or give the limit a lease, such as concurrency %d lease 30s", defaultLease, p.Capacity())}
			}
			p.algorithm = algorithm.NewConcurrency(p.Capacity(), int64(defaultLease))
		}
	}
	return a, nil
}

// rowKey returns the key of a part's row. The name of a rule contains no NUL byte.
func rowKey(p *Part) string { return p.Request.Rule.Name() + "\x00" + p.Request.Key }

// run decides the ask at an instant on the rows as the asks before it leave them.
func (a *question) run(now int64) {
	a.instant, a.err, a.answer = now, nil, weir.Decision{}
	reset := a.call.Op == weir.OpReset
	for i := range a.call.Parts {
		r := a.rows[a.at[i]]
		if a.err = a.call.Parts[i].load(r); r.damaged {
			a.err = errDamaged
		}
		if a.err != nil && !reset {
			return
		}
	}
	if a.err = nil; a.recalls(now) {
		return
	}
	a.answer = a.decide(now)
	wrote := false
	for i := range a.call.Parts {
		if p := &a.call.Parts[i]; p.Changed {
			p.store(a.rows[a.at[i]], now, reset)
			wrote = true
		}
	}
	if (wrote || a.final && !a.answer.Allowed) && a.identity != "" {
		a.rows[0].remember(saved{a.identity, algorithm.AddSaturating(now, remembered), a.numbers()}, now)
	}
}

// A decision with an identity is recognised for a minute, if it is among the last of its row: each decision writes all of them.
const (
	remembered     = int64(time.Minute)
	mostRemembered = 1024
)

// recalls gives a decision that was made before its first answer.
func (a *question) recalls(now int64) bool {
	if a.identity == "" {
		return false
	}
	s, parts := a.rows[0].state(a.identity), len(a.call.Parts)
	if s == nil || s.ends <= now || len(s.numbers) != answerNumbers+parts && len(s.numbers) != answerNumbers+parts+limitNumbers {
		return false
	}
	n := s.numbers
	binding := &a.call.Parts[min(max(n[10], 0), int64(parts-1))].Request
	a.call.Times = n[9]
	for i := range a.call.Parts {
		a.call.Parts[i].Taken = n[answerNumbers+i]
	}
	a.answer = weir.Decision{
		Allowed: n[0] == 1, Unrecorded: n[1] == 1, RefusedBy: uint8(n[2]), Cause: weir.Cause(n[3]), Limit: n[4], Remaining: n[5],
		RetryAfter: time.Duration(n[6]), ResetAfter: time.Duration(n[7]), Delay: time.Duration(n[8]), Rule: binding.Rule.Name(), Key: binding.Key,
	}
	a.answer.LimitReset = a.answer.ResetAfter
	if of := n[answerNumbers+parts:]; len(of) > 0 { // an older version did not write them
		a.answer.LimitIndex, a.answer.LimitReset = uint8(of[0]), time.Duration(of[1])
	}
	return true
}

// The numbers of an answer: these, when each part was taken, and then those of the binding limit.
const (
	answerNumbers = 11
	limitNumbers  = 2
)

// numbers returns the answer as recalls reads it.
func (a *question) numbers() []int64 {
	d := &a.answer
	binding := slices.IndexFunc(a.call.Parts, func(p Part) bool { return p.Request.Key == d.Key && p.Request.Rule.Name() == d.Rule })
	numbers := []int64{one(d.Allowed), one(d.Unrecorded), int64(d.RefusedBy), int64(d.Cause), d.Limit, d.Remaining,
		int64(d.RetryAfter), int64(d.ResetAfter), int64(d.Delay), a.call.Times, int64(binding)}
	for i := range a.call.Parts {
		numbers = append(numbers, a.call.Parts[i].Taken)
	}
	return append(numbers, int64(d.LimitIndex), int64(d.LimitReset))
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// identify gives a decision that counts something its identity. Another decision with the same identity is not the same.
func (a *question) identify(c *weir.Call) {
	if c.Identity != "" && (a.call.Op == weir.OpTake || a.call.Op == weir.OpRecord) {
		sum := fingerprint(c)
		a.identity, a.final = identityPrefix+string(sum[:16]), c.Final
	}
}

// fingerprint returns the hash of an identity and of the call that it names.
func fingerprint(c *weir.Call) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %d", c.Identity, c.Op, c.Most)
	for i := range c.Requests {
		fmt.Fprintf(h, " %q %q %d", c.Requests[i].Rule.Name(), c.Requests[i].Key, c.Requests[i].Cost)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// failed returns the error of an ask as its caller sees it.
func (e *StoreEngine) failed(a *question, err error, counted weir.Counted) error {
	if a.call.Op == weir.OpPeek {
		counted = weir.CountedNo
	}
	return &StoreError{Name: e.options.Name, Op: a.verb, Counted: counted, Err: err}
}

// wait waits for the answer. If ctx ends first, the decision may still be made; it is certainly not if nothing of it was
// sent.
func (e *StoreEngine) wait(ctx context.Context, a *question) error {
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
	}
	e.mu.Lock()
	was := a.place
	switch was {
	case answered:
		e.mu.Unlock()
		<-a.done
		return a.err
	case inQueue:
		e.queue = slices.DeleteFunc(e.queue, func(x *question) bool { return x == a })
		for _, r := range a.rows {
			r.queued--
		}
	}
	a.place = left
	e.mu.Unlock()
	counted := weir.CountedNo
	if was == sent {
		counted = weir.CountedUnknown
	}
	return e.failed(a, ctx.Err(), counted)
}
