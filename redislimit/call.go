package redislimit

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

var batches = sync.Pool{New: func() any { return new(batch) }}

// run asks the script for all decisions of the submissions, in their order, and
// answers each.
func (e *Engine) run(submissions []*submission) {
	lane := submissions[0].lane()
	err := e.exchange(lane, submissions)
	if moving(err) || crossing(err) {
		e.takeApart(submissions, err)
		return
	}
	for _, s := range submissions {
		e.finish(s, err)
	}
}

// finish answers a submission.
func (e *Engine) finish(s *submission, err error) {
	s.err = err
	e.stats.decisions.Add(uint64(len(s.decisions)))
	if s.decisions[0].op == opUndo {
		e.stats.undoing.Add(-1)
	}
	if !s.deliver() {
		e.late(s)
	}
}

// exchange is one call: the decisions go out, and the answers come in.
func (e *Engine) exchange(lane int, submissions []*submission) error {
	if e.closed.Load() {
		return errClosed
	}
	b := batches.Get().(*batch)
	for _, s := range submissions {
		for i := range s.decisions {
			b.add(&s.decisions[i])
		}
	}
	ctx, began := traced(submissions), time.Now()
	e.stats.calls.Add(1)
	e.stats.inFlight.Add(1)
	text, err := e.call(ctx, b, lane)
	e.stats.inFlight.Add(-1)
	if err != nil {
		text, err = "", e.failed(err, began)
	}
	e.observe(ctx, began, submissions, b, len(text), err)
	if err == nil || !lost(err) { // a call that is lost may still be read
		b.clear()
		batches.Put(b)
	}
	if err == nil {
		e.read(text, submissions)
	}
	return err
}

// read fills in the answers of a reply.
func (e *Engine) read(text string, submissions []*submission) {
	r := reply{left: text, since: math.Inf(-1)}
	now := int64(r.double())
	if e.options.DenyNewServer {
		r.since = r.double()
	}
	for _, s := range submissions {
		for i := range s.decisions {
			r.read(&s.decisions[i], now)
		}
	}
}

// failed is the error of a call that left at an instant. Where it says that the
// server is a replica, the connections from before are given up.
func (e *Engine) failed(err error, began time.Time) error {
	switch {
	case errors.Is(err, rueidis.ErrClosing): // also of one connection, after a failover
		reason := Lost
		if e.closed.Load() {
			reason = Closed
		}
		return &Error{Reason: reason, Counted: true, Err: err}
	case e.conns != nil && readOnly(err):
		e.conns.closeOlder(began)
	}
	return err
}

// lost says that no answer came.
func lost(err error) bool {
	_, answered := refusal(err)
	return !answered
}

// call is one round trip.
func (e *Engine) call(ctx context.Context, b *batch, lane int) (string, error) {
	var space [4]string
	args := append(space[:0], rueidis.BinaryString(b.args))
	if e.options.Clock != nil || e.options.Linger != 0 || e.options.DenyNewServer {
		instant := ""
		if e.options.Clock != nil {
			instant = strconv.FormatInt(floorDiv(e.options.Clock(), int64(time.Microsecond)), 10)
		}
		args = append(args, instant, strconv.FormatInt(e.options.Linger.Milliseconds(), 10))
	}
	if e.options.DenyNewServer {
		b.keys = append(b.keys, e.keys.server(lane%len(e.committers())))
		args = append(args, rueidis.BinaryString(b.spent))
	}
	if e.sender != nil {
		return eval(ctx, e.sender, b.keys, args)
	}
	return script.Exec(ctx, e.client, b.keys, args).ToString()
}

func (b *batch) clear() {
	clear(b.keys)
	b.keys, b.args, b.spent = b.keys[:0], b.args[:0], b.spent[:0]
	clear(b.index)
	b.last = nil
}

// late is for answers whose caller has gone: what was taken is undone.
func (e *Engine) late(s *submission) {
	if s.err != nil || s.state.Load() == nobody {
		return
	}
	for i := range s.decisions {
		d := &s.decisions[i]
		e.stats.late.Add(1)
		if d.op == opTake && d.admitted && d.err == nil {
			e.stats.givenBack.Add(1)
			e.committer(d.parts[0].lane).send(e.undoing(d, d.count(), 1))
		}
	}
}

// undoing asks to undo some of the times that a take took its costs, and then peeks
// at left times the costs.
func (e *Engine) undoing(d *decision, times, left int64) *submission {
	e.stats.undoing.Add(1)
	return &submission{
		done: make(chan struct{}, 1),
		decisions: []decision{
			{op: opUndo, parts: d.repeated(times), now: d.now},
			{op: opPeek, parts: d.repeated(left)},
		},
	}
}
