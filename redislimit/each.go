package redislimit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Each makes each call on its own, in order, in as few calls of the script as the bound of a batch allows. In a cluster
// it calls the lanes concurrently. Calls on one key are in one lane, so they are decided in order. A call on keys of
// several lanes is decided before the others.
func (e *Engine) Each(ctx context.Context, asked []weir.Call, results []weir.Result) error {
	if err := weir.Kit.CheckEach(asked, results); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return cannotDecide(weir.OpEach.String(), fault.Uncounted(fault.Cancelled, err))
	}
	for len(asked) > 0 {
		space := eachSpaces.Get().(*eachSpace)
		n := space.fill(e, asked, results)
		var all sync.WaitGroup
		for rest := *space; len(rest.calls) > 0; {
			own := rest.cutLane()
			if len(rest.calls) == 0 {
				own.ask(ctx, e, asked, results)
			} else {
				all.Go(func() { own.ask(ctx, e, asked, results) })
			}
		}
		all.Wait()
		space.release(results)
		if n < len(asked) {
			a, err := e.Do(ctx, asked[n])
			results[n] = weir.Result{Decision: a.Decision, Reservation: a.Reservation, Taken: a.Taken, Err: err}
			n++
		}
		asked, results = asked[n:], results[n:]
	}
	return nil
}

// eachSpace is what an Each works with: the decisions, ordered by their committers. The next one reuses it.
type eachSpace struct {
	parts     []wire.Part
	decisions []wire.Decision
	calls     []int // index of the call of each decision
	number    int   // of committers
}

var eachSpaces = sync.Pool{New: func() any { return new(eachSpace) }}

// mostKeptRequests bounds the space that is kept for reuse.
const mostKeptRequests = 1024

// release keeps the space for reuse, unless a call has failed: its answer may still come.
func (h *eachSpace) release(results []weir.Result) {
	if cap(h.parts) > mostKeptRequests || slices.ContainsFunc(h.calls, func(i int) bool { return results[i].Err != nil }) {
		return
	}
	clear(h.parts)
	clear(h.decisions)
	h.parts, h.decisions, h.calls = h.parts[:0], h.decisions[:0], h.calls[:0]
	eachSpaces.Put(h)
}

// fill makes a decision of each valid call, and answers the others. It returns the number of calls up to one that has to
// be made alone.
func (h *eachSpace) fill(e *Engine, asked []weir.Call, results []weir.Result) (n int) {
	h.parts, h.decisions, h.number = slices.Grow(h.parts, len(asked)), slices.Grow(h.decisions, len(asked)), e.calls.Number()
	for ; n < len(asked); n++ {
		if results[n].Err != nil {
			continue
		}
		q, alone, err := e.decisionOf(h.parts[len(h.parts):], &asked[n])
		if alone {
			break
		}
		if err == nil && len(q.Parts) == 0 {
			results[n], err = e.stateless(&asked[n])
		}
		if results[n].Err = err; err != nil || len(q.Parts) == 0 {
			continue
		}
		if used := len(h.parts) + len(q.Parts); used <= cap(h.parts) {
			h.parts = h.parts[:used]
		}
		h.decisions, h.calls = append(h.decisions, q), append(h.calls, n)
	}
	if h.number > 1 {
		sort.Stable(h)
	}
	return n
}

// lane returns which committer makes the i-th decision.
func (h *eachSpace) lane(i int) int { return h.decisions[i].Parts[0].Lane % h.number }

func (h *eachSpace) Len() int           { return len(h.calls) }
func (h *eachSpace) Less(i, j int) bool { return h.lane(i) < h.lane(j) }

func (h *eachSpace) Swap(i, j int) {
	h.decisions[i], h.decisions[j] = h.decisions[j], h.decisions[i]
	h.calls[i], h.calls[j] = h.calls[j], h.calls[i]
}

// cutLane cuts off the decisions of the first committer.
func (h *eachSpace) cutLane() (own eachSpace) {
	n := 1
	for n < len(h.calls) && h.lane(n) == h.lane(0) {
		n++
	}
	own = eachSpace{decisions: h.decisions[:n:n], calls: h.calls[:n:n]}
	h.decisions, h.calls = h.decisions[n:], h.calls[n:]
	return own
}

// opOf are the script's operations for those of an Each.
var opOf = map[weir.Op]wire.Op{weir.OpTake: wire.OpTake, weir.OpReserveAhead: wire.OpBook, weir.OpPeek: wire.OpPeek, weir.OpRecord: wire.OpRecord, weir.OpReturn: wire.OpRecord}

// decisionOf returns the decision of a call. alone reports that the call is more than one decision, or gives slots back.
func (e *Engine) decisionOf(space []wire.Part, c *weir.Call) (q wire.Decision, alone bool, err error) {
	o := opOf[c.Op]
	if c.Taken != nil {
		return q, true, nil
	}
	if o == wire.OpBook {
		q, _, err = e.bookingOf(space, c)
		return q, false, err
	}
	merged, err := mergedOf(o, c)
	if err != nil {
		return q, false, err
	}
	parts, at, err := e.parts(space, merged, c.Lease)
	if err == nil {
		err = cmp.Or(checkLeases(o, parts, merged), tooMuch(o, parts), enginekit.CheckIdentity(c.Op, c.Identity))
	}
	if err != nil {
		return q, false, err
	}
	if !at.oneLane || len(merged) < len(c.Requests) || at.leased && o == wire.OpRecord {
		return q, true, nil
	}
	spare(parts, c.Waits)
	q = asking(o, 1, parts, at)
	if at.refused {
		q.First = wire.OpTake
	}
	q.Final = c.Final
	q.Identify(&e.keys, c.Identity)
	return q, false, nil
}

// stateless answers a call whose limits have no state.
func (e *Engine) stateless(c *weir.Call) (r weir.Result, err error) {
	o := opOf[c.Op]
	if o == wire.OpBook {
		o = wire.OpTake
	}
	if r.Decision, err = e.withoutState(o, c.Requests); err == nil && c.Op == weir.OpReserveAhead {
		r.Reservation = weir.Kit.Granted(e, time.Time{}, r.Decision, nothing, *c)
	}
	return r, err
}

// takenOf returns the Taken of the answer to a decision, whose requests are not merged.
func takenOf(d *wire.Decision, c *weir.Call) []int64 {
	if d.Op != wire.OpTake || !d.Admitted || c.Lease == 0 {
		return nil
	}
	taken := newTakenAt(c.Requests)
	taken.note(d.Parts)
	return taken.of(c.Requests, c.Requests)
}

// hung is how long a call takes before its loss means a hung server. A call lost sooner means a broken connection.
const hung = minTimeout

// ask makes one call per batch and writes the results. It waits once for a hung server, and does not send later
// batches.
func (h *eachSpace) ask(ctx context.Context, e *Engine, asked []weir.Call, results []weir.Result) {
	var unsent error
	for from := 0; from < len(h.decisions); {
		to := from + e.calls.Fitting(h.decisions[from:])
		s := e.calls.Submission()
		s.Decisions = h.decisions[from:to]
		err := unsent
		if began := time.Now(); err == nil {
			err = e.calls.Ask(ctx, s)
			if silent(err) && time.Since(began) >= hung {
				unsent = fault.Uncounted(fault.Lost, fmt.Errorf("not sent, because the previous call was lost: %w", err))
			}
		}
		for i := from; i < to; i++ {
			c, result := &asked[h.calls[i]], &results[h.calls[i]]
			o := opOf[c.Op]
			failed := err
			if err == nil { // otherwise the answer may still come
				failed = s.Decisions[i-from].Err
			}
			if failed != nil {
				result.Err = asMade(c.Op, cannotDecide(o.String(), failed))
				continue
			}
			if d := s.Decisions[i-from]; o == wire.OpBook {
				d.Parts = slices.Clone(d.Parts) // the reservation keeps them
				result.Decision, result.Reservation = e.booked(d, c.Requests, c)
			} else {
				result.Decision = answer(o, d.Parts, c.Requests)
				result.Taken = takenOf(&d, c)
			}
		}
		if err == nil {
			e.calls.Release(s)
		}
		from = to
	}
}

// silent reports whether a server gave no answer in time.
func silent(err error) bool { return err != nil && fault.Of(err).Reason == fault.Lost }
