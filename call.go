package weir

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir/internal/compiled"
)

// Op is what a [Call] asks for.
type Op uint8

// The operations of an Engine. Package weir documents them in one table.
const (
	OpTake         Op = iota // take the requests now, or none
	OpTakeUpTo               // take the requests as many times as they fit, up to Most
	OpReserve                // take the requests now, and settle their true cost later
	OpReserveAhead           // reserve one request for the earliest instant, at most Longest away
	OpPeek                   // the answer of OpTake, without writing anything
	OpRecord                 // count the cost, even if it does not fit
	OpReturn                 // give units back
	OpReset                  // clear the keys
	OpEach                   // make each of several calls on its own
)

var opNames = [...]string{compiled.OpTake, compiled.OpTake, opReserve, opReserveAhead, compiled.OpPeek, compiled.OpRecord, compiled.OpReturn, compiled.OpReset, opEach}

// String returns the name of the operation in errors.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Call is one call of an [Engine]: its requests, and the settings that belong to no single request.
type Call struct {
	Op       Op
	Requests []Request // an OpEach has its own in Each

	Most    int64         // how many times an OpTakeUpTo may take the requests; 0 asks whether one more would be admitted
	Longest time.Duration // how far ahead the instant of an OpReserveAhead may be

	// Within, if above 0, bounds the time to decide. The end of the context then does not end the call: a client that
	// leaves cannot make its call undecided. An engine in this process needs no timer for it.
	Within time.Duration
	// Waits says that the caller waits for its turn, so that only the engine's own answer counts: see
	// [github.com/weirflow/weir/layer.DenyUntil].
	Waits bool
	// Lease is the identity that holds units of a Concurrency: an OpReturn releases the units of its
	// identity. 0 means none: units taken without an identity are released without one. OpReserve chooses a random one.
	// Other limits ignore it.
	Lease uint64
	// Identity names the decision, so that it can be repeated: an engine that recognises identities gives a repeated
	// decision its first answer, for a minute, and does not count it again. So a take whose reply was lost can be asked
	// again. Use a new identity for each decision, such as a random one, of at most 128 bytes. Redis recognises
	// identities. Memory refuses them, because it loses no reply.
	Identity string
	// Final has the Identity name a refusal, too: a repeated call is then refused again, with the first answer. Without it a
	// repeated call is decided again, because a refusal counted nothing.
	Final bool

	// Taken makes an OpReturn undo one take: it is the Answer.Taken of that take. A window, a cycle, a log or a gate then gets
	// back only those units that still count there, and never others in their place; a bucket gets all of them. A
	// [Reservation] is settled so. Without Taken, units come back to the current window, or the oldest ones leave.
	Taken []int64

	Each *Batch // set for an OpEach alone
}

// Batch is the calls of an OpEach, which take, reserve ahead, peek, record or return, and room for the answer to each.
type Batch struct {
	Calls   []Call
	Results []Result
}

// Answer is the answer to a [Call].
type Answer struct {
	Decision    Decision
	Times       int64        // how many times an OpTakeUpTo took the requests; 0 is a refusal
	Reservation *Reservation // set by an OpReserve or OpReserveAhead
	// Taken is set by an admitted OpTake or OpTakeUpTo with a Lease. It has for each request the instant at which its units
	// were taken, in nanoseconds by the clock of the engine. See Call.Taken.
	Taken []int64
	// Paid has the requests that were taken, one for each request of the call, if some replaced others: see
	// Request.Otherwise. Return or Record these. nil means that the call's own were taken.
	Paid []Request
}

// Result is one answer of [Engine.Each].
type Result struct {
	Decision    Decision
	Reservation *Reservation // set by an OpReserveAhead
	Taken       []int64      // as in Answer
	Paid        []Request    // as in Answer
	Err         error
}

// Next makes a call on the engine below: see [Wrap].
type Next func(ctx context.Context, call Call) (Answer, error)

// Wrap returns an engine that calls around for each call of e, of any operation. around makes the call with next,
// perhaps a changed one, perhaps twice or never, and returns its answer. It must be safe for concurrent use, and quick:
// [github.com/weirflow/weir/pace.Queue] makes calls of a Memory while its other callers wait.
//
// Everything else passes through: reservations settle on e, and [Find] finds the optional abilities of e.
func Wrap(e Engine, around func(ctx context.Context, call Call, next Next) (Answer, error)) Engine {
	next := Next(e.Do)
	switch below := e.(type) { // the same in fewer steps: a take in memory costs little more than one of them
	case *verbs:
		next = below.do
	case *wrapped:
		next = below.do
	case *Memory:
		next = func(ctx context.Context, c Call) (a Answer, err error) {
			if c.Op == OpTake && c.Within <= 0 && c.Identity == "" && c.Lease == 0 && c.Taken == nil && !c.Waits {
				err = below.take(ctx, c.Requests, &a.Decision)
				return a, err
			}
			return below.Do(ctx, c)
		}
	}
	do := func(ctx context.Context, call Call) (Answer, error) { return around(ctx, call, next) }
	return &wrapped{verbs{do, e.Check}, e, around, next}
}

type wrapped struct {
	verbs
	engine Engine
	around func(ctx context.Context, call Call, next Next) (Answer, error)
	next   Next
}

// Do is do in one step less.
func (w *wrapped) Do(ctx context.Context, call Call) (Answer, error) {
	return w.around(ctx, call, w.next)
}

// Take is do in one step less.
func (w *wrapped) Take(ctx context.Context, requests ...Request) (Decision, error) {
	a, err := w.around(ctx, Call{Op: OpTake, Requests: requests}, w.next)
	return a.Decision, err
}

// Unwrap returns the engine below, for Find.
func (w *wrapped) Unwrap() Engine { return w.engine }

// Find returns the first of e and the engines below it that is a T: an optional ability such as [SlotKeeper], or an
// engine such as *Memory. An engine over another one has the method Unwrap() Engine.
func Find[T any](e Engine) (found T, ok bool) {
	for e != nil {
		if found, ok = e.(T); ok {
			return found, true
		}
		over, _ := e.(interface{ Unwrap() Engine })
		if over == nil {
			break
		}
		e = over.Unwrap()
	}
	return found, false
}

// verbs are an engine of two functions.
type verbs struct {
	do    Next
	check func(rules ...*Rule) error
}

func (v *verbs) Do(ctx context.Context, call Call) (Answer, error) { return v.do(ctx, call) }
func (v *verbs) Check(rules ...*Rule) error                        { return v.check(rules...) }

func (v *verbs) Take(ctx context.Context, requests ...Request) (Decision, error) {
	a, err := v.do(ctx, Call{Op: OpTake, Requests: requests})
	return a.Decision, err
}

func (v *verbs) Each(ctx context.Context, calls []Call, results []Result) error {
	_, err := v.do(ctx, Call{Op: OpEach, Each: &Batch{calls, results}})
	return err
}

func (v *verbs) Reserve(ctx context.Context, requests ...Request) (*Reservation, error) {
	a, err := v.do(ctx, Call{Op: OpReserve, Requests: requests})
	return a.Reservation, err
}

func (v *verbs) Peek(ctx context.Context, requests ...Request) (Decision, error) {
	a, err := v.do(ctx, Call{Op: OpPeek, Requests: requests})
	return a.Decision, err
}

func (v *verbs) Record(ctx context.Context, requests ...Request) (Decision, error) {
	a, err := v.do(ctx, Call{Op: OpRecord, Requests: requests})
	return a.Decision, err
}

func (v *verbs) Return(ctx context.Context, requests ...Request) (Decision, error) {
	a, err := v.do(ctx, Call{Op: OpReturn, Requests: requests})
	return a.Decision, err
}

func (v *verbs) Reset(ctx context.Context, requests ...Request) error {
	_, err := v.do(ctx, Call{Op: OpReset, Requests: requests})
	return err
}

// TakeUpTo takes each request the same number of times, up to most, in one decision, so that a request of cost 1 takes
// that many units. It returns that number; 0 is a refusal, and the Decision describes the requests taken once.
func TakeUpTo(ctx context.Context, e Engine, most int64, requests ...Request) (times int64, d Decision, err error) {
	a, err := e.Do(ctx, Call{Op: OpTakeUpTo, Most: most, Requests: requests})
	return a.Times, a.Decision, err
}
