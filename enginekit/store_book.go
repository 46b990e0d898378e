package enginekit

import (
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// linePoll is how soon a process books again while an older caller of another process has to be booked first.
const linePoll = 50 * time.Millisecond

// newBooking returns the question that books a request for the earliest instant within longest at which it is admitted, and
// what it booked.
func (e *StoreEngine) newBooking(ctx context.Context, take weir.Call, longest time.Duration) (*question, []algorithm.Booked, error) {
	a, err := e.newCall(ctx, take)
	if err != nil {
		return nil, nil, err
	}
	a.verb = weir.OpReserveAhead
	booked := make([]algorithm.Booked, len(a.call.Parts))
	a.decide = func(now int64) weir.Decision {
		return a.call.change(func(parts []algorithm.Part) algorithm.Answer {
			for i := range parts {
				booked[i] = algorithm.Booked{Before: plain(parts[i].State), Cost: parts[i].Cost}
			}
			answer := algorithm.BookAhead(parts, now, int64(max(longest, 0)))
			for i := range parts {
				booked[i].After, booked[i].Due = plain(parts[i].State), algorithm.AddSaturating(now, answer.Delay)
			}
			return answer
		})
	}
	return a, booked, nil
}

// lineBook is a booking on its way. Its question has the row of the key.
type lineBook struct {
	*question
	engine  *StoreEngine
	callers []*bookCaller
	horizon time.Duration
	retry   time.Duration
}

type bookCaller struct {
	LineCaller
	question *question // nil if it cannot be booked
}

// Book books instants for callers of one rule and key in one swap: see [Lines]. The place of the first caller that is refused
// bars younger callers of other processes until it may be booked.
func (l *storeLines) Book(ctx context.Context, book *LineBook) error {
	b := &lineBook{engine: l.engine, question: &question{call: &Call{Op: weir.OpTake}, verb: weir.OpReserveAhead, done: make(chan struct{}, 1)}, horizon: book.Horizon}
	for i := range book.Callers {
		c := &bookCaller{LineCaller: book.Callers[i]}
		b.callers = append(b.callers, c)
		take := weir.Call{Op: weir.OpTake, Requests: c.Requests}
		if c.Err = weir.CheckAhead(take); c.Err != nil {
			continue
		}
		q, booked, err := l.engine.newBooking(ctx, take, book.Horizon)
		if c.Err = err; err != nil {
			continue
		}
		c.question = q
		c.Withdraw = func(ctx context.Context, n int64) error { return l.engine.withdraw(ctx, take, booked, n) }
		b.include(q)
	}
	if b.call.stateless() { // nothing is booked that anybody could wait for
		for _, c := range b.callers {
			if c.question != nil {
				c.Decision = c.question.decide(0)
			}
		}
	} else {
		b.together = func(now int64) { b.decideAll(l.process, now) }
		l.engine.enter(b.question)
		if err := l.engine.wait(ctx, b.question); err != nil {
			return err
		}
	}
	for i, c := range b.callers {
		book.Callers[i] = c.LineCaller
	}
	book.Retry = b.retry
	return nil
}

func (b *lineBook) decideAll(process, now int64) {
	r := b.rows[0]
	line := lineOf(r, process, now)
	var own *linePlace
	b.retry = 0
	for _, c := range b.callers {
		if c.question == nil {
			continue
		}
		arrival := arrivalOf(c.Since, now)
		retry := b.book(c, own != nil || line.bars(arrival), now)
		if c.Decision.Allowed || c.Err != nil || c.Decision.RetryAfter >= weir.Never || own != nil {
			continue
		}
		b.retry = max(retry, time.Millisecond)
		own = &linePlace{process: process, arrival: arrival, heard: now, life: algorithm.AddSaturating(int64(b.retry), lineLife)}
	}
	if len(b.callers) > 0 {
		line.replace(r, own, arrivalOf(b.callers[0].Since, now), now)
	}
}

// book books a caller, unless others bar it. It returns when to try again.
func (b *lineBook) book(c *bookCaller, barred bool, now int64) (retry time.Duration) {
	booking := c.question.decide
	if barred {
		c.question.decide = func(now int64) weir.Decision {
			return c.question.call.change(func(parts []algorithm.Part) algorithm.Answer { return algorithm.Peek(parts, now) })
		}
	}
	b.runPart(c.question, now)
	c.question.decide = booking
	d := c.question.answer
	if c.Err = nil; c.question.err != nil {
		c.Err = b.engine.failed(c.question, c.question.err, weir.CountedNo)
	}
	if barred {
		d.Allowed, d.Delay, d.RetryAfter = false, 0, max(d.RetryAfter, time.Millisecond)
		c.Decision = d
		return max(d.RetryAfter-b.horizon, linePoll)
	}
	if retry = d.RetryAfter; !d.Allowed {
		d.RetryAfter = time.Duration(algorithm.AddSaturating(int64(d.RetryAfter), int64(b.horizon)))
	}
	c.Decision = d
	return retry
}
