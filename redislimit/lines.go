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
)

// lines are what one process, such as a queue, asks of the lines that Redis keeps: weir.Lines. The script follows their
// rules (script/line.lua); docs/design/waiting.md explains them.
type lines struct {
	engine *Engine
	name   string // of the process: 8 bytes, also in the names of its channels
	hear   func(weir.LineSignal)

	mu       sync.Mutex
	channels map[string]*channel
	plain    bool // the cluster has no SPUBLISH: Redis before 7.0
	closed   bool
}

// mostProcesses bounds the entries in one line.
const mostProcesses = 1024

// The least and the greatest time for which a process that was called bars others.
const (
	grace     = 200 * time.Millisecond
	mostGrace = time.Second
)

// EnterLines returns the lines for one process: see weir.LineKeeper.
func (e *Engine) EnterLines(hear func(weir.LineSignal)) weir.Lines {
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
			l.hear(weir.LineSignal{Err: cannotDecide(opTake.String(), errClosed)})
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
		if p := &parts[i]; p.limit.kind == kindSlots {
			if slots++; of[p.request] {
				return 0, false // a rule with two lines
			}
			of[p.request] = true
		}
	}
	return l.lane(parts[0].lane), slots <= mostCallerSlots
}

// lane returns the lane of an ask for that of a key: without a cluster one call spans all.
func (l *lines) lane(lane int) int { return lane % len(l.engine.committers()) }

// asker is the lease of a caller without slots. That of a caller who books is 0.
const asker = 1

// mostCallerSlots bounds the lines of slots in which one caller stands.
const mostCallerSlots = 16

func (l *lines) parts(requests []weir.Request, lease uint64) ([]part, layout, error) {
	merged, err := enginekit.Merge(weir.OpTake, requests)
	if err != nil {
		return nil, layout{}, err
	}
	parts, at, err := l.engine.parts(nil, merged, lease)
	if err == nil {
		err = cmp.Or(checkLeases(opTake, parts, merged), tooMuch(opTake, parts))
	}
	return parts, at, err
}

// Ask decides the callers of ask in one call: see weir.Lines.
func (l *lines) Ask(ctx context.Context, ask *weir.LineAsk) error {
	if err := ctx.Err(); err != nil {
		return cannotDecide(opTake.String(), uncounted(Cancelled, err))
	}
	a := &lineAsk{lines: l, lane: -1, header: &lineHeader{process: l.name}}
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
	a.header.hears, a.header.grace = l.hears(a.lane), l.grace(a.lane)
	return a.send(ctx)
}

// lineAsk is an ask on its way.
type lineAsk struct {
	lines     *lines
	lane      int // -1 until it is known
	header    *lineHeader
	keys      []*weir.LineKey
	callers   []*weir.LineCaller
	requests  [][]weir.Request // of each caller, merged
	decisions []decision
}

// on reports whether a part is on the lane of the ask.
func (a *lineAsk) on(p *part) bool {
	lane := a.lines.lane(p.lane)
	if a.lane < 0 {
		a.lane = lane
	}
	return a.lane == lane
}

// grace returns for how long the process bars others when it was called: longer if the server is far.
func (l *lines) grace(lane int) time.Duration {
	trip := l.engine.committer(lane).trip()
	return max(grace, min(2*trip+grace/2, mostGrace))
}

// tells adds what the process says of a key.
func (a *lineAsk) tells(k *weir.LineKey) error {
	cost := k.Slots.Cost
	k.Slots.Cost = 0
	parts, _, err := a.lines.parts([]weir.Request{k.Slots}, 0)
	k.Slots.Cost = cost
	if err != nil {
		return err
	}
	at := slices.IndexFunc(parts, func(p part) bool { return p.limit.kind == kindSlots })
	if at < 0 {
		return &weir.RequestError{Op: opTake.String(), Rule: k.Slots.Rule.Name(), Field: "rule", Reason: "has no slots, so it has no line"}
	}
	if !a.on(&parts[at]) {
		return &weir.RequestError{Op: opTake.String(), Rule: k.Slots.Rule.Name(), Field: "key", Reason: "is on another lane than the ask"}
	}
	a.keys = append(a.keys, k)
	a.header.keys = append(a.header.keys, lineKey{key: parts[at].line(), slots: decision{op: opPeek, parts: parts[at : at+1]}, token: k.Token, since: k.Since, cost: cost, want: k.Want,
		keep: lineKeep{k.Keep.Lease, k.Keep.Since, k.Keep.Units}})
	return nil
}

// asks adds a caller.
func (a *lineAsk) asks(c *weir.LineCaller, repeats bool) error {
	parts, at, err := a.lines.parts(c.Requests, c.Lease)
	if err != nil {
		return err
	}
	if !at.oneLane || at.refused || len(parts) == 0 || !a.on(&parts[0]) {
		return &weir.RequestError{Op: opTake.String(), Field: "requests", Reason: "cannot stand in line"}
	}
	merged, _ := enginekit.Merge(weir.OpTake, c.Requests)
	q := &lineCaller{since: c.Since, again: repeats, stays: c.Stays, lease: asker}
	for i := range parts {
		p := &parts[i]
		switch {
		case p.limit.kind == kindSlots && p.cost > 0:
			key := p.line()
			at := slices.IndexFunc(a.header.keys, func(k lineKey) bool { return k.key == key })
			if at < 0 {
				return &weir.RequestError{Op: opTake.String(), Rule: merged[p.request].Rule.Name(), Field: "keys", Reason: "of the ask lack its slots"}
			}
			q.slots, q.lease = append(q.slots, lineSlots{at, p.cost, i}), p.lease
		case !p.joins && p.limit.kind != kindSlots:
			q.rates = append(q.rates, lineRate{p.line(), i, unitOf(parts[i : i+1])})
		}
	}
	a.callers, a.requests = append(a.callers, c), append(a.requests, merged)
	a.decisions = append(a.decisions, decision{op: opTake, parts: parts, line: q})
	return nil
}

// send makes the call and hands out its answers.
func (a *lineAsk) send(ctx context.Context) error {
	if len(a.decisions) == 0 {
		peek := a.header.keys[0].slots
		peek.line = &lineCaller{nobody: true}
		a.decisions = []decision{peek}
	}
	a.decisions[0].line.header, a.decisions[len(a.decisions)-1].line.last = a.header, a.header
	a.header.callers = len(a.callers)
	s := &submission{done: make(chan struct{}, 1), decisions: a.decisions}
	err := a.lines.engine.ask(ctx, s)
	if err != nil {
		return cannotDecide(opTake.String(), err)
	}
	if err := a.decisions[0].err; err != nil && weir.Unavailable(failure(err)) { // then no caller was decided
		return cannotDecide(opTake.String(), err)
	}
	for i, c := range a.callers {
		a.answer(i, c)
	}
	for i, k := range a.keys {
		k.LineNews = a.header.keys[i].news
	}
	return nil
}

// answer hands out the answer to a caller.
func (a *lineAsk) answer(i int, c *weir.LineCaller) {
	d := &a.decisions[i]
	if d.err != nil {
		c.Err = cannotDecide(opTake.String(), d.err)
		return
	}
	q, merged := d.line, a.requests[i]
	switch q.outcome {
	case outcomeHolds:
		d.admitted = true
	case outcomeStands:
		for j, s := range q.slots {
			if q.refusing&(1<<j) == 0 {
				continue
			}
			p := &d.parts[s.part]
			p.measure.Before = max(p.measure.Before, time.Millisecond)
			c.Stands = append(c.Stands, slices.IndexFunc(c.Requests, func(r weir.Request) bool {
				return r.Rule == merged[p.request].Rule && r.Key == merged[p.request].Key
			}))
			if a.header.keys[s.at].full {
				c.Err = fmt.Errorf("redislimit: wait: %w: callers of %d processes wait for rule %q, key %q, which is the most", weir.ErrQueueFull, mostProcesses, merged[p.request].Rule.Name(), merged[p.request].Key)
			}
		}
	case outcomeDry:
		for j := range d.parts {
			if d.parts[j].limit.kind == kindSlots {
				d.parts[j].measure.Before = 0
			}
		}
	}
	c.Decision = answer(opTake, d.parts, merged)
	switch q.outcome {
	case outcomeTurn:
		if q.wait == 0 { // nobody else waits for the rates
			c.Next = d.next()
		}
	case outcomeHolds:
		c.Decision.Allowed, c.Decision.RetryAfter = true, 0
	case outcomeDry:
		c.Decision.Allowed, c.Decision.RetryAfter = false, max(duration(int64(q.wait)), time.Microsecond)
	case outcomeStands:
		c.Decision.Allowed = false
	}
}

// next returns the time until the rates of an admitted decision admit the same again, as far as the answer tells.
func (d *decision) next() (wait time.Duration) {
	for i := range d.parts {
		p := &d.parts[i]
		if s, ok := p.state(); ok && d.admitted && !p.limit.kind.measured() {
			f := p.limit.functions
			wait = max(wait, duration(f.Wait(f.Take(s, d.now, p.cost, 0), d.now, p.cost)))
		}
	}
	return wait
}

// Book books instants for callers of one rule and key: see weir.Lines.
func (l *lines) Book(ctx context.Context, book *weir.LineBook) error {
	s := &submission{done: make(chan struct{}, 1)}
	var asked []*weir.LineCaller
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
			c.Decision, c.Err = l.engine.plain(ctx, opTake, c.Requests)
			continue
		}
		lane := parts[0].lane
		q := &lineBooking{process: l.name, key: parts[0].line(), since: c.Since, unit: unitOf(parts), way: l.engine.committer(lane).trip() / 2}
		s.decisions = append(s.decisions, decision{op: opBook, parts: parts, longest: int64(book.Horizon / time.Microsecond), booking: q})
		asked = append(asked, c)
	}
	if len(s.decisions) == 0 {
		return nil
	}
	if err := l.engine.ask(ctx, s); err != nil {
		return cannotDecide(opBook.String(), err)
	}
	for i, c := range asked {
		d := &s.decisions[i]
		if c.Err = d.err; d.err != nil {
			c.Err = cannotDecide(opBook.String(), d.err)
			continue
		}
		c.Decision = answer(opTake, d.parts, c.Requests)
		if d.admitted {
			c.Decision.Delay = duration(d.due - d.now)
			c.Withdraw = func(ctx context.Context, n int64) error { return l.engine.withdraw(ctx, *d, n) }
			continue
		}
		c.Decision.Allowed = false
		c.Decision.RetryAfter = max(duration(max(d.due, int64(min(d.space, 1<<52)))-d.now), time.Microsecond)
		if book.Retry == 0 {
			book.Retry = duration(int64(d.booking.retry))
		}
	}
	return nil
}

// unitOf returns how long the cost of a booking takes.
func unitOf(parts []part) (most time.Duration) {
	for i := range parts {
		p := &parts[i]
		most = max(most, duration(int64(p.limit.spent()))/time.Duration(max(p.limit.capacity, 1))*time.Duration(p.cost))
	}
	return most
}
