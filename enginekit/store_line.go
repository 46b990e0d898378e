package enginekit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// This file keeps lines in a store: see [LineKeeper]. The line of a key is one more state in its row, so a decision and the
// places in line are one swap. A place is the oldest caller of a process. Nobody signals: a process asks again every 50 ms, and
// a place of which nobody was heard for a second bars nobody. An ask is one question (lineAsk) that decides all its callers
// in turn. Bookings are in store_book.go.

// storeLines are the lines of a store for one process.
type storeLines struct {
	engine  *StoreEngine
	process int64
}

var _ LineKeeper = (*StoreEngine)(nil)

// EnterLines returns the lines for one process: see [LineKeeper]. A store has no signals, so hear is never called.
func (e *StoreEngine) EnterLines(func(LineSignal)) Lines {
	return &storeLines{e, int64(weir.NewLease())}
}

// Hears returns false.
func (l *storeLines) Hears() bool { return false }

// Keeps reports whether each rule has slots of one limit at most.
func (l *storeLines) Keeps(requests ...weir.Request) (lane int, kept bool) {
	a, err := l.engine.newCall(context.Background(), weir.Call{Op: weir.OpTake, Requests: requests, Lease: 1})
	if err != nil {
		return 0, false
	}
	of := map[string]bool{}
	for i := range a.call.Parts {
		if p := &a.call.Parts[i]; p.Leases() {
			if of[rowKey(p)] {
				return 0, false
			}
			of[rowKey(p)] = true
		}
	}
	return 0, true
}

const (
	lineName     = "\x00line" // of the state of a line; no limit has it
	lineLife     = int64(time.Second)
	lineSlack    = int64(20 * time.Millisecond) // callers whose arrivals differ by less are of one age
	mostPlaces   = 256
	placeNumbers = 5
)

// linePlace is the place of a process in a line.
type linePlace struct {
	process, arrival int64
	cost             int64 // that it keeps from younger callers
	heard, life      int64
}

// older reports whether a place is before a caller.
func (p linePlace) older(arrival int64) bool { return p.arrival < arrival-lineSlack }

// line is a line as an ask finds it.
type line struct {
	others []linePlace // that live
	own    *linePlace  // nil without one
}

// lineOf reads the line of a row. A place that was heard of later than now is from before the clock was set back.
func lineOf(r *row, process, now int64) (l line) {
	s := r.state(lineName)
	if s == nil {
		return l
	}
	for n := s.numbers; len(n) >= placeNumbers; n = n[placeNumbers:] {
		p := linePlace{n[0], min(n[1], now), n[2], n[3], n[4]}
		switch {
		case now-p.heard >= p.life || p.heard-now > lineLife:
		case p.process == process:
			l.own = &p
		default:
			l.others = append(l.others, p)
		}
	}
	return l
}

// bars reports whether another process has an older caller.
func (l *line) bars(arrival int64) bool {
	return slices.ContainsFunc(l.others, func(p linePlace) bool { return p.older(arrival) })
}

// full reports whether there is no place for another process.
func (l *line) full() bool { return l.own == nil && len(l.others) >= mostPlaces }

// replace puts the place of a caller, or takes it out if it is nil. That of an older caller stays.
func (l *line) replace(r *row, own *linePlace, arrival, now int64) {
	if l.own != nil && l.own.older(arrival) || own != nil && l.full() {
		return
	}
	l.put(r, own, now)
}

// put replaces the own place in the row, unless it says the same and was told not long ago. None is nil.
func (l *line) put(r *row, own *linePlace, now int64) {
	if own == nil && l.own == nil || r.damaged {
		return
	}
	if own != nil && l.own != nil {
		moved := own.arrival - l.own.arrival
		if moved < lineSlack && -moved < lineSlack && own.cost == l.own.cost && own.heard+own.life-lineLife/2 < l.own.heard+l.own.life {
			return
		}
	}
	places := l.others
	if own != nil {
		places = append(slices.Clone(places), *own)
	}
	s := saved{name: lineName}
	for _, p := range places {
		s.numbers = append(s.numbers, p.process, p.arrival, p.cost, p.heard, p.life)
		s.ends = max(s.ends, algorithm.AddSaturating(p.heard, p.life))
	}
	r.put(s, now)
}

// lineAsk is an ask on its way: its question has the rows of all callers and keys.
type lineAsk struct {
	*question
	process int64
	engine  *StoreEngine
	callers []*lineCaller
	keys    map[string]*lineKey // by row
	order   []*lineKey
}

// lineCaller is a caller of an ask, and its answer: the asker may have gone meanwhile.
type lineCaller struct {
	LineCaller
	ask      *lineAsk
	question *question // nil if it cannot be decided
	repeats  bool
}

// lineKey is a key of an ask.
type lineKey struct {
	LineKey
	row   string
	part  int // in the question of the ask
	line  line
	stood int64      // the units that callers of this ask want that were refused, or stay
	first *linePlace // the first of them
}

// Ask decides the callers of an ask in one swap: see [Lines].
func (l *storeLines) Ask(ctx context.Context, ask *LineAsk) error {
	if err := ctx.Err(); err != nil {
		return CannotDecide(weir.OpTake, err)
	}
	a := &lineAsk{engine: l.engine, process: l.process, question: &question{call: &Call{Op: weir.OpTake}, verb: weir.OpTake, done: make(chan struct{}, 1)}, keys: map[string]*lineKey{}}
	for i := range ask.Keys {
		if err := l.tells(ctx, a, ask.Keys[i]); err != nil {
			return err
		}
	}
	for i := range ask.Callers {
		a.callers = append(a.callers, l.asks(ctx, a, ask.Callers[i], ask.Repeats))
	}
	if len(a.call.Parts) > 0 {
		a.together = a.decideAll
		l.engine.enter(a.question)
		if err := l.engine.wait(ctx, a.question); err != nil {
			return err
		}
	}
	for i, c := range a.callers {
		ask.Callers[i] = c.LineCaller
	}
	for i, k := range a.order {
		ask.Keys[i].LineNews = k.LineNews
	}
	return nil
}

// tells adds what the process says of a key.
func (l *storeLines) tells(ctx context.Context, a *lineAsk, key LineKey) error {
	peek := key.Slots
	peek.Cost = 0
	q, err := l.engine.newCall(ctx, weir.Call{Op: weir.OpPeek, Requests: []weir.Request{peek}})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(q.call.Parts, func(p Part) bool { return p.Leases() })
	if at < 0 {
		return &weir.RequestError{Op: weir.OpTake.String(), Rule: peek.Rule.Name(), Field: "rule", Reason: "has no slots, so it has no line"}
	}
	p := q.call.Parts[at]
	k := &lineKey{LineKey: key, row: rowKey(&p), part: len(a.call.Parts)}
	k.LineNews = LineNews{}
	a.call.Parts = append(a.call.Parts, p)
	a.keys[k.row], a.order = k, append(a.order, k)
	return nil
}

// asks adds a caller.
func (l *storeLines) asks(ctx context.Context, a *lineAsk, caller LineCaller, repeats bool) *lineCaller {
	c := &lineCaller{LineCaller: caller, ask: a, repeats: repeats}
	q, err := l.engine.newCall(ctx, weir.Call{Op: weir.OpTake, Requests: caller.Requests, Lease: caller.Lease})
	if err != nil {
		c.Err = err
		return c
	}
	for i := range q.call.Parts {
		if p := &q.call.Parts[i]; p.Leases() && p.Request.Cost > 0 && a.keys[rowKey(p)] == nil {
			c.Err = &weir.RequestError{Op: weir.OpTake.String(), Rule: p.Request.Rule.Name(), Field: "keys", Reason: "of the ask lack its slots"}
			return c
		}
	}
	q.decide, c.question = c.decide, q
	a.include(q)
	return c
}

// include adds the rows of a part question, which the question of the whole has entered with its own.
func (a *question) include(part *question) {
	part.from = len(a.call.Parts)
	a.call.Parts = append(a.call.Parts, part.call.Parts...)
}

// runPart decides a part of a question on the rows as the parts before leave them.
func (a *question) runPart(part *question, now int64) {
	part.rows, part.at = a.rows, a.at[part.from:]
	part.run(now)
}

func (a *lineAsk) decideAll(now int64) {
	for _, k := range a.order {
		k.line, k.stood, k.first, k.LineNews = lineOf(a.rowOf(k), a.process, now), 0, nil, LineNews{}
	}
	for _, c := range a.callers {
		if c.question == nil {
			continue
		}
		c.Stands, c.Err = nil, nil
		a.runPart(c.question, now)
		if c.Decision = c.question.answer; c.question.err != nil {
			c.Err = a.engine.failed(c.question, c.question.err, weir.CountedNo)
		} else if c.Decision.Allowed {
			c.Taken = c.question.call.taken(c.Requests)
		}
	}
	for _, k := range a.order {
		k.settle(a, now)
	}
}

func (a *lineAsk) rowOf(k *lineKey) *row { return a.rows[a.at[k.part]] }

// decide admits a caller, or has it stand for the slots that refuse it.
func (c *lineCaller) decide(now int64) weir.Decision {
	call := c.question.call
	d := call.change(func(parts []algorithm.Part) algorithm.Answer { return algorithm.Peek(parts, now) })
	if c.repeats && call.holds(now) {
		d.Allowed, d.RetryAfter, d.RefusedBy, d.Cause = true, 0, 0, 0
		return d
	}
	if d.RetryAfter >= weir.Never { // a cost above a capacity
		return d
	}
	arrival := arrivalOf(c.Since, now)
	if d := c.rates(arrival, now); !d.Allowed {
		return d
	}
	refused := false
	for i := range call.Parts {
		if p := &call.Parts[i]; p.Leases() && p.Request.Cost > c.key(p).room(p, c.Since, arrival, now) {
			refused = true
			c.Stands = append(c.Stands, slices.IndexFunc(c.Requests, func(r weir.Request) bool { return r.Rule == p.Request.Rule && r.Key == p.Request.Key }))
			c.key(p).stand(c, p, arrival, now)
		}
	}
	if !refused {
		c.place(arrival, now, nil)
		return call.Decide(now)
	}
	c.stay(arrival, now)
	d.Allowed, d.RetryAfter, d.Cause = false, max(d.RetryAfter, time.Millisecond), weir.ByCount
	return d
}

// rates decides the rates of a caller. One that they refuse takes no place among the slots. It has one in the lines of the
// rates, so that bookings of other processes do not starve it.
func (c *lineCaller) rates(arrival, now int64) weir.Decision {
	d := c.question.call.change(func(parts []algorithm.Part) algorithm.Answer {
		for i := range parts {
			if algorithm.Leases(parts[i].Algorithm) {
				parts[i].Cost = 0
			}
		}
		return algorithm.Peek(parts, now)
	})
	for _, r := range c.rateRows() {
		line := lineOf(r, c.ask.process, now)
		if d.Allowed && line.bars(arrival) {
			d.Allowed, d.Cause, d.RetryAfter = false, weir.ByCount, linePoll
		}
	}
	if !d.Allowed && d.RetryAfter < weir.Never {
		c.place(arrival, now, &linePlace{process: c.ask.process, arrival: arrival, heard: now, life: algorithm.AddSaturating(int64(d.RetryAfter), lineLife)})
	}
	return d
}

// rateRows returns the rows of rates that have no slots, because the line of such a row is that of the slots.
func (c *lineCaller) rateRows() (rows []*row) {
	for i := range c.question.call.Parts {
		p, r := &c.question.call.Parts[i], c.question.rows[c.question.at[i]]
		if p.Request.Rule.Bookable() && p.Request.Cost > 0 && !slices.Contains(rows, r) {
			rows = append(rows, r)
		}
	}
	return rows
}

// place puts the place of a caller into the lines of its rates, or takes it out if it is nil.
func (c *lineCaller) place(arrival, now int64, own *linePlace) {
	for _, r := range c.rateRows() {
		line := lineOf(r, c.ask.process, now)
		line.replace(r, own, arrival, now)
	}
}

// arrivalOf returns when a caller came, on the clock of the store.
func arrivalOf(since time.Time, now int64) int64 { return now - max(int64(time.Since(since)), 0) }

// key returns the key of a part with slots; a part without a cost may have none.
func (c *lineCaller) key(p *Part) *lineKey {
	if k := c.ask.keys[rowKey(p)]; k != nil {
		return k
	}
	return &lineKey{}
}

// stay has a caller that stays keep the units of the keys that admit it.
func (c *lineCaller) stay(arrival, now int64) {
	for i := range c.question.call.Parts {
		p := &c.question.call.Parts[i]
		stands := slices.ContainsFunc(c.Stands, func(at int) bool { return c.Requests[at].Rule == p.Request.Rule && c.Requests[at].Key == p.Request.Key })
		if c.Stays && p.Leases() && !stands {
			c.key(p).stand(c, p, arrival, now)
		}
	}
}

// holds reports whether the lease of a call holds all its slots, of which there are some.
func (c *Call) holds(now int64) (holds bool) {
	for i := range c.Parts {
		if s, ok := c.Parts[i].algorithm.(*algorithm.Concurrency); ok && c.Parts[i].Request.Cost > 0 {
			if _, holds = s.Renew(c.Parts[i].State.state.Clone(), now, c.Parts[i].Request.Cost, c.Lease); !holds {
				return false
			}
		}
	}
	return holds
}

// room returns the free slots, less those that older callers want.
func (k *lineKey) room(p *Part, since time.Time, arrival, now int64) int64 {
	room := p.Room(p.State, now) - k.stood
	for i := range k.line.others {
		if o := &k.line.others[i]; o.older(arrival) {
			room -= o.cost
		}
	}
	if k.Want > 0 && k.Since.Before(since) {
		room -= k.Want
	}
	if k.Keep.Units > 0 && k.Keep.Since.Before(since) {
		room -= k.Keep.Units
	}
	return room
}

// stand notes a caller that stands for the key, or keeps its units.
func (k *lineKey) stand(c *lineCaller, p *Part, arrival, now int64) {
	if k.line.full() {
		c.Err = fmt.Errorf("%s: wait: %w: callers of %d processes wait for rule %q, key %q, which is the most", c.ask.engine.options.Name, weir.ErrQueueFull, mostPlaces, p.Request.Rule.Name(), p.Request.Key)
		return
	}
	k.stood += p.Request.Cost
	if k.first == nil {
		k.first = &linePlace{arrival: arrival, cost: p.Request.Cost}
	}
}

// settle tells the line of the oldest caller of the process, and the process of free units.
func (k *lineKey) settle(a *lineAsk, now int64) {
	own := k.first
	for _, rest := range []struct {
		since time.Time
		cost  int64
		waits bool
	}{{k.Since, k.Slots.Cost, k.Want > 0}, {k.Keep.Since, k.Keep.Units, k.Keep.Units > 0}} {
		if arrival := arrivalOf(rest.since, now); rest.waits && (own == nil || arrival < own.arrival) {
			own = &linePlace{arrival: arrival, cost: rest.cost}
		}
	}
	if k.first == nil && k.Want > 0 {
		p := a.call.Parts[k.part]
		if p.load(a.rowOf(k)) == nil {
			if room := k.room(&p, k.Since, arrivalOf(k.Since, now), now); room >= max(k.Slots.Cost, 1) {
				k.Units = room
			}
		}
	}
	if own != nil {
		own.process, own.heard, own.life = a.process, now, lineLife
	}
	if own == nil || !k.line.full() {
		k.line.put(a.rowOf(k), own, now)
	}
}
