package enginekit

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// booking is a request to book the earliest instant that admits it.
type booking struct {
	engine *StoreEngine
	call   weir.Call
	booked []algorithm.Booked // what its decision has booked of each part
}

// newBooking returns the question of an OpReserveAhead.
func (e *StoreEngine) newBooking(ctx context.Context, c weir.Call) (*question, error) {
	if err := weir.Kit.CheckAhead(c); err != nil {
		return nil, err
	}
	longest := max(c.Longest, 0)
	c.Op = weir.OpTake
	a, err := e.newCall(ctx, c)
	if err != nil {
		return nil, err
	}
	b := &booking{engine: e, call: c, booked: make([]algorithm.Booked, len(a.call.Parts))}
	a.verb, a.booking = weir.OpReserveAhead, b
	a.decide = func(now int64) weir.Decision {
		return a.call.change(func(parts []algorithm.Part) algorithm.Answer {
			for i := range parts {
				b.booked[i] = algorithm.Booked{Before: plain(parts[i].State), Cost: parts[i].Cost}
			}
			answer := algorithm.BookAhead(parts, now, int64(longest))
			for i := range parts {
				b.booked[i].After, b.booked[i].Due = plain(parts[i].State), algorithm.AddSaturating(now, answer.Delay)
			}
			return answer
		})
	}
	return a, nil
}

// plain returns a state without its entries, which change in place.
func plain(s algorithm.State) algorithm.State {
	if s.Log != nil {
		return algorithm.State{}
	}
	return s
}

// withdraw gives n units of the booking back.
func (b *booking) withdraw(ctx context.Context, n int64) error {
	a, err := b.engine.newCall(ctx, b.call)
	if err != nil {
		return err
	}
	a.verb = weir.OpReturn
	a.decide = func(now int64) weir.Decision {
		return a.call.change(func(parts []algorithm.Part) algorithm.Answer {
			for i := range parts {
				p := &parts[i]
				p.State, p.Changed = algorithm.Withdraw(p.Algorithm, p.State, &b.booked[i], now, n), true
			}
			return algorithm.Answer{}
		})
	}
	_, err = b.engine.answer(ctx, a, b.call)
	return err
}
