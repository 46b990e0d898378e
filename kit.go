package weir

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir/internal/rule"
)

// Package enginekit exports these functions in place of this package, because only engines and fronts call them. It
// reads the same type.
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
	}{
		func(do Next, check func(...*Rule) error) Engine { return &verbs{do, check} },
		reserve, granted, checkAhead, checkTaken, checkEach, unsupported, newLease,
		(*Rule).heldPart, (*Rule).spentPart, (*Reservation).take, (*Reservation).handOver, drop,
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
