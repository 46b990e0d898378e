package redislimit

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// lines are what one process, such as a queue, asks of the lines that Redis keeps: enginekit.Lines. The script follows their
// rules (internal/wire/script/line.lua); docs/why/queues.md explains them.
type lines struct {
	engine *Engine
	name   string // of the process: 8 bytes, also in the names of its channels
	hear   func(enginekit.LineSignal)

	mu       sync.Mutex
	channels map[string]*channel
	plain    bool // the cluster has no SPUBLISH: Redis before 7.0
	closed   bool
}

// The least and the greatest time for which a process that was called bars others.
const (
	grace     = 200 * time.Millisecond
	mostGrace = time.Second
)

// EnterLines returns the lines for one process: see enginekit.LineKeeper.
func (e *Engine) EnterLines(hear func(enginekit.LineSignal)) enginekit.Lines {
	l := &lines{engine: e, name: rand.Text()[:8], hear: hear, channels: map[string]*channel{}}
	e.entered.mu.Lock()
	defer e.entered.mu.Unlock()
	e.entered.all = slices.DeleteFunc(e.entered.all, func(w weak.Pointer[lines]) bool { return w.Value() == nil })
	e.entered.all = append(e.entered.all, weak.Make(l))
	return l
}

// entered are the lines of all processes of an engine that are still in use.
type entered struct {
	mu  sync.Mutex
	all []weak.Pointer[lines]
}

func (all *entered) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, w := range all.all {
		if l := w.Value(); l != nil {
			l.close()
			l.hear(enginekit.LineSignal{Err: cannotDecide(wire.OpTake.String(), fault.ErrClosed)})
		}
	}
}

// Keeps reports whether one call can decide callers of the requests in line: those on one lane.
func (l *lines) Keeps(requests ...weir.Request) (lane int, kept bool) {
	parts, at, err := l.parts(requests, weir.NewLease())
	if err != nil || at.refused || !at.oneLane || len(parts) == 0 {
		return 0, false
	}
	slots, of := 0, map[int]bool{}
	for i := range parts {
		if p := &parts[i]; p.Limit.Kind == stored.KindSlots {
			if slots++; of[p.Request] {
				return 0, false // a rule with two lines
			}
			of[p.Request] = true
		}
	}
	return l.lane(parts[0].Lane), slots <= mostCallerSlots
}

// lane returns the lane of an ask for that of a key: without a cluster one call spans all.
func (l *lines) lane(lane int) int { return lane % l.engine.calls.Number() }

// asker is the lease of a caller without slots. That of a caller who books is 0.
const asker = 1

// mostCallerSlots bounds the lines of slots in which one caller stands.
const mostCallerSlots = 16

func (l *lines) parts(requests []weir.Request, lease uint64) ([]wire.Part, layout, error) {
	merged, err := enginekit.Merge(weir.OpTake, requests)
	if err != nil {
		return nil, layout{}, err
	}
	parts, at, err := l.engine.parts(nil, merged, lease)
	if err == nil {
		err = cmp.Or(checkLeases(wire.OpTake, parts, merged), tooMuch(wire.OpTake, parts))
	}
	return parts, at, err
}

// Ask decides the callers of ask in one call: see enginekit.Lines.
func (l *lines) Ask(ctx context.Context, ask *enginekit.LineAsk) error {
	if err := ctx.Err(); err != nil {
		return cannotDecide(wire.OpTake.String(), fault.Uncounted(fault.Cancelled, err))
	}
	a := &lineAsk{lines: l, lane: -1, header: &wire.LineHeader{Process: l.name}}
	for i := range ask.Keys {
		if err := a.tells(&ask.Keys[i]); err != nil {
			return err
		}
	}
	for i := range ask.Callers {
		c := &ask.Callers[i]
		if err := a.asks(c, ask.Repeats); err != nil {
			c.Err = err
		}
	}
	if len(a.keys)+len(a.decisions) == 0 {
		return nil
	}
	a.header.Hears, a.header.Grace = l.hears(a.lane), l.grace(a.lane)
	return a.send(ctx)
}

// lineAsk is an ask on its way.
type lineAsk struct {
	lines     *lines
	lane      int // -1 until it is known
	header    *wire.LineHeader
	keys      []*enginekit.LineKey
	callers   []*enginekit.LineCaller
	requests  [][]weir.Request // of each caller, merged
	decisions []wire.Decision
}

// on reports whether a part is on the lane of the ask.
func (a *lineAsk) on(p *wire.Part) bool {
	lane := a.lines.lane(p.Lane)
	if a.lane < 0 {
		a.lane = lane
	}
	return a.lane == lane
}

// grace returns for how long the process bars others when it was called: longer if the server is far.
func (l *lines) grace(lane int) time.Duration {
	trip := l.engine.calls.Committer(lane).Trip()
	return max(grace, min(2*trip+grace/2, mostGrace))
}

// tells adds what the process says of a key.
func (a *lineAsk) tells(k *enginekit.LineKey) error {
	peek := k.Slots
	peek.Cost = 0
	parts, _, err := a.lines.parts([]weir.Request{peek}, 0)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(parts, func(p wire.Part) bool { return p.Limit.Kind == stored.KindSlots })
	if at < 0 {
		return &weir.RequestError{Op: wire.OpTake.String(), Rule: k.Slots.Rule.Name(), Field: "rule", Reason: "has no slots, so it has no line"}
	}
	if !a.on(&parts[at]) {
		return &weir.RequestError{Op: wire.OpTake.String(), Rule: k.Slots.Rule.Name(), Field: "key", Reason: "is on another lane than the ask"}
	}
	a.keys = append(a.keys, k)
	a.header.Keys = append(a.header.Keys, wire.LineKey{LineKey: *k, Key: parts[at].Line(), Peek: wire.Decision{Op: wire.OpPeek, Parts: parts[at : at+1]}})
	return nil
}

// asks adds a caller.
func (a *lineAsk) asks(c *enginekit.LineCaller, repeats bool) error {
	parts, at, err := a.lines.parts(c.Requests, c.Lease)
	if err != nil {
		return err
	}
	if !at.oneLane || at.refused || len(parts) == 0 || !a.on(&parts[0]) {
		return &weir.RequestError{Op: wire.OpTake.String(), Field: "requests", Reason: "cannot stand in line"}
	}
	merged, _ := enginekit.Merge(weir.OpTake, c.Requests)
	q := &wire.LineCaller{Since: c.Since, Again: repeats, Stays: c.Stays, Lease: asker}
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Limit.Kind == stored.KindSlots && p.Cost > 0:
			key := p.Line()
			at := slices.IndexFunc(a.header.Keys, func(k wire.LineKey) bool { return k.Key == key })
			if at < 0 {
				return &weir.RequestError{Op: wire.OpTake.String(), Rule: merged[p.Request].Rule.Name(), Field: "keys", Reason: "of the ask lack its slots"}
			}
			q.Slots, q.Lease = append(q.Slots, wire.LineSlots{At: at, Cost: p.Cost, Part: i}), p.Lease
		case !p.Joins && p.Limit.Kind != stored.KindSlots:
			q.Rates = append(q.Rates, wire.LineRate{Key: p.Line(), At: i, Unit: unitOf(parts[i : i+1])})
		}
	}
	a.callers, a.requests = append(a.callers, c), append(a.requests, merged)
	a.decisions = append(a.decisions, wire.Decision{Op: wire.OpTake, Parts: parts, Line: q})
	return nil
}

// send makes the call and hands out its answers.
func (a *lineAsk) send(ctx context.Context) error {
	if len(a.decisions) == 0 {
		peek := a.header.Keys[0].Peek
		peek.Line = &wire.LineCaller{Nobody: true}
		a.decisions = []wire.Decision{peek}
	}
	a.decisions[0].Line.Header, a.decisions[len(a.decisions)-1].Line.Last = a.header, a.header
	a.header.Callers = len(a.callers)
	s := calls.NewSubmission(a.decisions...)
	err := a.lines.engine.calls.Ask(ctx, s)
	if err != nil {
		return cannotDecide(wire.OpTake.String(), err)
	}
	if err := a.decisions[0].Err; err != nil && weir.Unavailable(cannotDecide(wire.OpTake.String(), err)) { // then no caller was decided
		return cannotDecide(wire.OpTake.String(), err)
	}
	for i, c := range a.callers {
		a.answer(i, c)
	}
	for i, k := range a.keys {
		k.LineNews = a.header.Keys[i].LineNews
	}
	return nil
}

// answer hands out the answer to a caller.
func (a *lineAsk) answer(i int, c *enginekit.LineCaller) {
	d := &a.decisions[i]
	if d.Err != nil {
		c.Err = cannotDecide(wire.OpTake.String(), d.Err)
		return
	}
	q, merged := d.Line, a.requests[i]
	switch q.Outcome {
	case wire.OutcomeHolds:
		d.Admitted = true
	case wire.OutcomeStands:
		for j, s := range q.Slots {
			if q.Refusing&(1<<j) == 0 {
				continue
			}
			p := &d.Parts[s.Part]
			p.Measure.Before = max(p.Measure.Before, time.Millisecond)
			c.Stands = append(c.Stands, slices.IndexFunc(c.Requests, func(r weir.Request) bool {
				return r.Rule == merged[p.Request].Rule && r.Key == merged[p.Request].Key
			}))
			if a.header.Keys[s.At].Full {
				c.Err = fmt.Errorf("redislimit: wait: %w: callers of %d processes wait for rule %q, key %q, which is the most", weir.ErrQueueFull, wire.MostProcesses, merged[p.Request].Rule.Name(), merged[p.Request].Key)
			}
		}
	case wire.OutcomeDry:
		for j := range d.Parts {
			m := &d.Parts[j].Measure
			if m.Before = max(m.Before, stored.Tick); d.Parts[j].Limit.Kind == stored.KindSlots {
				m.Before = 0
			}
		}
	}
	if c.Decision = answer(wire.OpTake, d.Parts, merged); c.Decision.Allowed {
		taken := newTakenAt(merged)
		taken.note(d.Parts)
		c.Taken = taken.of(merged, c.Requests)
	}
	switch q.Outcome {
	case wire.OutcomeTurn:
		if q.Wait == 0 { // nobody else waits for the rates
			c.Next = d.Next()
		}
	case wire.OutcomeHolds:
		c.Decision.Allowed, c.Decision.RetryAfter, c.Decision.RefusedBy, c.Decision.Cause = true, 0, 0, 0
	case wire.OutcomeDry:
		refuse(&c.Decision, stored.Duration(int64(q.Wait)))
	case wire.OutcomeStands:
		refuse(&c.Decision, c.Decision.RetryAfter)
	}
}

// refuse makes a decision the refusal of a caller, though the limits may have room for it: they keep it for others.
func refuse(d *weir.Decision, wait time.Duration) {
	d.Allowed, d.RetryAfter, d.Cause = false, max(wait, stored.Tick), cmp.Or(d.Cause, weir.ByCount)
}

// Book books instants for callers of one rule and key: see enginekit.Lines.
func (l *lines) Book(ctx context.Context, book *enginekit.LineBook) error {
	s := calls.NewSubmission()
	var asked []*enginekit.LineCaller
	for i := range book.Callers {
		c := &book.Callers[i]
		c.Err = cmp.Or(ctx.Err(), weir.CheckAhead(weir.Call{Requests: c.Requests}))
		if c.Err != nil {
			continue
		}
		parts, at, err := l.engine.parts(nil, c.Requests, 0)
		switch {
		case err != nil:
			c.Err = err
			continue
		case len(parts) == 0 || at.refused:
			c.Decision, c.Err = l.engine.plain(ctx, wire.OpTake, c.Requests)
			continue
		}
		lane := parts[0].Lane
		q := &wire.LineBooking{Process: l.name, Key: parts[0].Line(), Since: c.Since, Unit: unitOf(parts), Way: l.engine.calls.Committer(lane).Trip() / 2}
		s.Decisions = append(s.Decisions, wire.Decision{Op: wire.OpBook, Parts: parts, Longest: int64(book.Horizon / time.Microsecond), Booking: q})
		asked = append(asked, c)
	}
	if len(s.Decisions) == 0 {
		return nil
	}
	if err := l.engine.calls.Ask(ctx, s); err != nil {
		return cannotDecide(wire.OpBook.String(), err)
	}
	for i, c := range asked {
		d := &s.Decisions[i]
		if c.Err = d.Err; d.Err != nil {
			c.Err = cannotDecide(wire.OpBook.String(), d.Err)
			continue
		}
		c.Decision = answer(wire.OpTake, d.Parts, c.Requests)
		if d.Admitted {
			c.Decision.Delay = stored.Duration(d.Due - d.Now)
			c.Withdraw = func(ctx context.Context, n int64) error { return l.engine.withdraw(ctx, *d, n) }
			continue
		}
		refuse(&c.Decision, stored.Duration(max(d.Due, int64(min(d.Space, 1<<52)))-d.Now))
		if book.Retry == 0 {
			book.Retry = stored.Duration(int64(d.Booking.Retry))
		}
	}
	return nil
}

// unitOf returns how long the cost of a booking takes.
func unitOf(parts []wire.Part) (most time.Duration) {
	for i := range parts {
		p := &parts[i]
		most = max(most, stored.Duration(int64(p.Limit.Spent()))/time.Duration(max(p.Limit.Capacity, 1))*time.Duration(p.Cost))
	}
	return most
}
