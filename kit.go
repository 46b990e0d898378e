package weir

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir/internal/rule"
)

// Package enginekit exports these functions in place of this package, because only engines and fronts call them. It
// reads the same type. Below are those of a reservation that passes to another process, and the checks of calls that every
// engine makes, Memory among them.
func init() {
	rule.Kit = struct {
		EngineOf    func(do Next, check func(...*Rule) error) Engine
		Reserve     func(context.Context, Engine, Call) (Answer, error)
		Granted     func(e Engine, since time.Time, d Decision, withdraw func(context.Context, int64) error, c Call) *Reservation
		CheckAhead  func(Call) error
		CheckTaken  func(Call) error
		CheckEach   func([]Call, []Result) error
		Unsupported func(Op, string) error
		NewLease    func() uint64
		Held, Spent func(*Rule) *Rule
		TakeOf      func(*Reservation) Call
		HandOver    func(*Reservation) Call
		Drop        func(Engine, Call)
		Window      func(Limit, time.Time) (start, end time.Time, ok bool)
	}{
		func(do Next, check func(...*Rule) error) Engine { return &verbs{do, check} },
		reserve, granted, checkAhead, checkTaken, checkEach, unsupported, newLease,
		(*Rule).heldPart, (*Rule).spentPart, (*Reservation).take, (*Reservation).handOver, drop, calendarWindow,
	}
}

// take is enginekit.TakeOf.
func (r *Reservation) take() Call {
	if r == nil {
		return Call{}
	}
	c := Call{Op: OpTake, Lease: r.lease, Taken: slices.Clone(r.taken)}
	if h, ok := r.handle.(*holding); ok {
		c.Requests = slices.Clone(h.asked)
	}
	return c
}

// handOver is enginekit.HandOver.
func (r *Reservation) handOver() Call {
	c := r.take()
	if r != nil {
		if h, ok := r.handle.(*holding); ok {
			h.release()
		}
	}
	return c
}

// checkTaken refuses a Taken that is not one instant for each request of an OpReturn.
func checkTaken(c Call) error {
	if c.Taken != nil && (c.Op != OpReturn || len(c.Taken) != len(c.Requests)) {
		return &RequestError{Op: c.Op.String(), Field: "taken", Reason: fmt.Sprintf("has %d instants for %d requests; it is of a return alone", len(c.Taken), len(c.Requests))}
	}
	return nil
}

// checkAhead returns a *RequestError for an OpReserveAhead that no engine can make.
func checkAhead(c Call) error {
	if len(c.Requests) != 1 {
		return &RequestError{Op: opReserveAhead, Field: "requests", Reason: "are not one"}
	}
	switch q := &c.Requests[0]; {
	case q.Rule == nil || !q.Rule.compiled.Made():
		return &RequestError{Op: opReserveAhead, Field: "rule", Reason: "was not made by NewRule"}
	case !q.Rule.Bookable():
		return &RequestError{Op: opReserveAhead, Rule: q.Rule.Name(), Field: "rule", Reason: "cannot be reserved ahead: a window, a log or slots cannot promise when units come free"}
	case c.Identity != "":
		return &RequestError{Op: opReserveAhead, Rule: q.Rule.Name(), Field: "identity", Reason: "is given, but no engine recognises a repeated reservation"}
	}
	return nil
}

// checkEach is enginekit.CheckEach.
func checkEach(calls []Call, results []Result) error {
	if problem := rule.CheckResults(len(calls), len(results)); problem != nil {
		return requestError(opEach, problem)
	}
	for i := range calls {
		results[i] = Result{}
		switch o := calls[i].Op; o {
		case OpTake, OpReserveAhead, OpPeek, OpRecord, OpReturn:
		default:
			results[i].Err = unsupported(o, "is none of take, reserve ahead, peek, record and return, so it needs a call of its own")
		}
	}
	return nil
}

// unsupported returns the *RequestError of an operation that an engine cannot make.
func unsupported(op Op, reason string) error {
	return &RequestError{Op: op.String(), Field: fieldOperation, Reason: reason}
}

const fieldOperation = "operation"
