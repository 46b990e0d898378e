package api

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// wholeCalls is the engine of waiting callers. A call that has begun is finished although its caller leaves or the
// daemon stops, so that the daemon knows what was taken, and grants it or gives it back. A call of a caller that has
// left is not begun.
type wholeCalls struct {
	weir.Engine
	patience time.Duration // bounds a call; 0 does not
}

func (e *wholeCalls) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	ctx = context.WithoutCancel(ctx)
	if e.patience == 0 {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	return ctx, cancel, nil
}

func (e *wholeCalls) Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	ctx, cancel, err := e.begin(ctx)
	if err != nil {
		return weir.Decision{}, err
	}
	defer cancel()
	return e.Engine.Take(ctx, requests...)
}

func (e *wholeCalls) Peek(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	ctx, cancel, err := e.begin(ctx)
	if err != nil {
		return weir.Decision{}, err
	}
	defer cancel()
	return e.Engine.Peek(ctx, requests...)
}

func (e *wholeCalls) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	ctx, cancel, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return e.Engine.Reserve(ctx, requests...)
}

// TakeUpTo is that of the engine, or takes as many by several calls.
func (e *wholeCalls) TakeUpTo(ctx context.Context, most int64, requests ...weir.Request) (int64, weir.Decision, error) {
	ctx, cancel, err := e.begin(ctx)
	if err != nil {
		return 0, weir.Decision{}, err
	}
	defer cancel()
	return weir.TakeUpTo(ctx, e.Engine, most, requests...)
}

// Flush is that of the engine, if it has one.
func (e *wholeCalls) Flush(ctx context.Context) error {
	if engine, ok := e.Engine.(interface{ Flush(context.Context) error }); ok {
		return engine.Flush(ctx)
	}
	return nil
}

// wholeBookings are the wholeCalls of an engine that books and renews slots, and may keep lines.
type wholeBookings struct {
	*wholeCalls
	weir.AheadTaker
	weir.Holder
	lines weir.LineKeeper // or nil
}

// StandInLine returns a place in the engine's line, or nil.
func (e *wholeBookings) StandInLine(requests ...weir.Request) weir.LinePlace {
	if e.lines == nil {
		return nil
	}
	if place := e.lines.StandInLine(requests...); place != nil {
		return wholePlace{place, e.wholeCalls}
	}
	return nil
}

// wholePlace is a place whose calls are whole.
type wholePlace struct {
	weir.LinePlace
	calls *wholeCalls
}

func (p wholePlace) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	ctx, cancel, err := p.calls.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return p.LinePlace.Reserve(ctx, requests...)
}

func (e *wholeBookings) TakeAhead(ctx context.Context, longest time.Duration, request weir.Request) (weir.Decision, func(context.Context, int64) error, error) {
	ctx, cancel, err := e.begin(ctx)
	if err != nil {
		return weir.Decision{}, nil, err
	}
	defer cancel()
	return e.AheadTaker.TakeAhead(ctx, longest, request)
}

// newWholeCalls returns the engine of waiting callers. A call of the memory engine is whole in any case.
func newWholeCalls(engine weir.Engine, patience time.Duration) weir.Engine {
	if memory, ok := engine.(*weir.Memory); ok {
		return memory
	}
	calls := &wholeCalls{engine, patience}
	ahead, books := engine.(weir.AheadTaker)
	holder, holds := engine.(weir.Holder)
	if !books || !holds {
		return calls
	}
	lines, _ := engine.(weir.LineKeeper)
	return &wholeBookings{calls, ahead, holder, lines}
}
