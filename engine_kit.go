package weir

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
)

// EngineKit has the functions of this package that only engines and fronts need. Its only value is [Kit]. Package
// enginekit has the rest.
type EngineKit uint8

// Kit is the value of EngineKit: a constant, so that nobody can change it.
const Kit EngineKit = 0

// EngineOf returns an engine that makes all its calls with do, and checks rules with check.
func (EngineKit) EngineOf(do Next, check func(rules ...*Rule) error) Engine { return &verbs{do, check} }

// Compiled returns the compiled form of a rule, or nil for a nil rule. Only packages of this repository can name its type.
func (EngineKit) Compiled(r *Rule) *compiled.Rule {
	if r == nil {
		return nil
	}
	return &r.compiled
}

// Algorithm compiles a limit that rules hold, with all times in ticks. The error is a *LimitError.
func (EngineKit) Algorithm(l Limit, tick time.Duration) (algorithm.Algorithm, error) {
	compiled, err := compile(l)
	if err != nil {
		return nil, err
	}
	if refusal := refusalOf(l, compiled); refusal != nil {
		return nil, refusal
	}
	t := ticks{tick: max(tick, 1), limit: l}
	made := l.algorithm(&t)
	return made, t.err
}

// Held returns a rule of those limits of r whose units are held until they are released, or nil if there are none. It
// has the name of r and so shares its states.
func (EngineKit) Held(r *Rule) *Rule {
	if r == nil {
		return nil
	}
	return r.held
}

// Spent works like Held for the limits whose units are spent.
func (EngineKit) Spent(r *Rule) *Rule {
	if r == nil {
		return nil
	}
	return r.spent
}

// NewLease returns a random Call.Lease, which is never 0.
func (EngineKit) NewLease() uint64 { return rand.Uint64() | 1 }

// LeaseOf returns the Lease of a reservation. If the call has an Identity, the lease follows from it, so that a repeated call has
// the same slots, in any process and through any layer.
func (EngineKit) LeaseOf(c Call) uint64 {
	if c.Identity == "" {
		return Kit.NewLease()
	}
	h := sha256.New()
	for i := range c.Requests {
		q := &c.Requests[i]
		if q.Rule == nil {
			return Kit.NewLease() // a take refuses it
		}
		fmt.Fprintf(h, "%q %q %d %q ", q.Rule.Name(), q.Key, q.Cost, c.Identity)
	}
	return binary.LittleEndian.Uint64(h.Sum(nil)) | 1
}

// TakeOf returns the take of a reservation on an engine: its requests, its Lease and the Taken of its answer, which is the
// instant of a reservation for later. Granted returns the reservation again.
func (EngineKit) TakeOf(r *Reservation) Call {
	if r == nil {
		return Call{}
	}
	c := Call{Op: OpTake, Lease: r.lease, Taken: slices.Clone(r.taken)}
	if h, ok := r.handle.(*reserved); ok {
		c.Requests = slices.Clone(h.asked)
	}
	return c
}

// HandOver returns the take of a reservation, which another process may settle, and stops renewing its slots here: they end
// with their lease unless another caller renews them.
func (EngineKit) HandOver(r *Reservation) Call {
	c := Kit.TakeOf(r)
	if r != nil {
		if h, ok := r.handle.(*reserved); ok {
			h.release()
		}
	}
	return c
}

// Links returns the requests, each followed by those that may be made in its place ([Request.Otherwise]). A call that has no answer may
// have taken any of them.
func (EngineKit) Links(requests []Request) (all []Request) {
	for i := range requests {
		for q, n := &requests[i], 0; q != nil && n <= compiled.MaxLinks; q, n = q.Otherwise, n+1 {
			all = append(all, *q)
		}
	}
	return alone(all)
}

// CheckTaken refuses a Taken that is not one instant for each request of an OpReturn.
func (EngineKit) CheckTaken(c Call) error {
	if c.Taken != nil && (c.Op != OpReturn || len(c.Taken) != len(c.Requests)) {
		return &RequestError{Op: c.Op.String(), Field: "taken", Reason: fmt.Sprintf("has %d instants for %d requests; it is of a return alone", len(c.Taken), len(c.Requests))}
	}
	return nil
}

// CheckAhead returns a *RequestError for an OpReserveAhead that no engine can make.
func (EngineKit) CheckAhead(c Call) error {
	if len(c.Requests) != 1 {
		return &RequestError{Op: opReserveAhead, Field: "requests", Reason: "are not one"}
	}
	switch q := &c.Requests[0]; {
	case q.Rule != nil && q.Rule.compiled.Made() && q.Cost < 0:
		return q.negative(opReserveAhead)
	case q.Rule == nil || !q.Rule.compiled.Made():
		return &RequestError{Op: opReserveAhead, Field: "rule", Reason: "was not made by NewRule"}
	case !q.Rule.Bookable():
		return &RequestError{Op: opReserveAhead, Rule: q.Rule.Name(), Field: "rule", Reason: "cannot be reserved ahead: a window, a log or slots cannot promise when units come free"}
	case c.Identity != "":
		return &RequestError{Op: opReserveAhead, Rule: q.Rule.Name(), Field: "identity", Reason: "is given, but no engine recognises a repeated reservation"}
	}
	return nil
}

// CheckEach refuses an OpEach whose calls and results differ in number. It writes an error to the results of calls that
// cannot be made in it, which are those that do not take, reserve ahead, peek, record or return. The engine decides the
// others.
func (EngineKit) CheckEach(calls []Call, results []Result) error {
	if problem := compiled.CheckResults(len(calls), len(results)); problem != nil {
		return requestError(opEach, problem)
	}
	for i := range calls {
		results[i] = Result{}
		switch o := calls[i].Op; o {
		case OpTake, OpReserveAhead, OpPeek, OpRecord, OpReturn:
		default:
			results[i].Err = Kit.Unsupported(o, "is none of take, reserve ahead, peek, record and return, so it needs a call of its own")
		}
	}
	return nil
}

// Unsupported returns the *RequestError of an operation that an engine cannot make. It wraps errors.ErrUnsupported.
func (EngineKit) Unsupported(op Op, reason string) error {
	return &RequestError{Op: op.String(), Field: fieldOperation, Reason: reason}
}

const fieldOperation = "operation"
