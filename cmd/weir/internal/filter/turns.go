package filter

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/weirflow/weir/pace"
)

// turns holds pieces back. Callers wait for the turns of each key, or for those of all keys, and each turn releases the
// next piece. The pieces of a key keep their order. A caller is a reservation with a timer, or a goroutine in a queue.
type turns struct {
	ctx   context.Context
	terms *terms
	bytes bool
	work  func(ctx context.Context, line []byte) error
	fair  *lane // with Fair: the turns of all keys

	lanes      map[string]*lane
	ring       []*lane // with Fair: the next turn comes first
	unasked    []*lane // may have pieces without a waiting caller
	held, size int     // pieces and bytes

	ready  []grant // that this goroutine has seen
	paying grant   // the last one

	callers sync.WaitGroup
	works   sync.WaitGroup
	wake    chan struct{}

	mu      sync.Mutex
	granted []grant
	err     error
}

// piece is a part of the input that passes whole.
type piece struct {
	data   []byte
	cost   int64  // 0 means that it passes after the piece before it
	lines  int64  // that begin in it
	buffer []byte // has no use after this piece
	slot   *pace.Acquired
}

// lane holds the pieces of one key, in order. It exists while the key has pieces.
type lane struct {
	key     string
	pieces  []piece
	asked   int       // pieces that a caller waits for or has paid for, from the first on
	waiting int64     // units that callers wait for
	paid    int64     // units that were granted
	listed  bool      // in unasked
	late    time.Time // when it last had a turn that was late
}

// grant is units that were granted to a lane.
type grant struct {
	lane *lane
	cost int64
	slot *pace.Acquired // for work
	at   time.Time
}

func newTurns(ctx context.Context, t *terms, o *Options) *turns {
	all := &turns{ctx: ctx, terms: t, bytes: o.Chunk > 0, work: o.Work, lanes: map[string]*lane{}, wake: make(chan struct{}, 1)}
	if o.Fair {
		all.fair = &lane{}
	}
	return all
}

// pass takes a turn that is now, for a key without held pieces.
func (t *turns) pass(key string, cost int64) bool {
	return t.fair == nil && t.lanes[key] == nil && t.terms.allow(key, cost)
}

// add holds a piece back.
func (t *turns) add(key string, p piece) {
	l := t.lanes[key]
	if l == nil {
		l = &lane{key: key}
		t.lanes[key] = l
		if t.fair != nil {
			t.ring = append(t.ring, l)
		}
	}
	l.pieces = append(l.pieces, p)
	t.held++
	t.size += len(p.data)
	if t.fair != nil {
		l = t.fair
	}
	t.list(l)
}

// keep keeps the buffer of the pieces without a key that were added last, until they have passed.
func (t *turns) keep(buffer []byte) (kept bool) {
	l := t.lanes[""]
	if l == nil || l.pieces[len(l.pieces)-1].buffer != nil {
		return false
	}
	l.pieces[len(l.pieces)-1].buffer = buffer
	return true
}

func (t *turns) list(l *lane) {
	if !l.listed {
		l.listed = true
		t.unasked = append(t.unasked, l)
	}
}

// ask takes the turns of held pieces that are now, and lets callers wait for others, up to the bounds. It reports
// whether a piece can pass.
func (t *turns) ask() bool {
	for _, l := range t.unasked {
		l.listed = false
		for cost := t.unpaid(l); cost > 0; cost = t.unpaid(l) {
			if l.waiting == 0 && t.terms.allow(l.key, cost) {
				l.asked++
				t.ready = append(t.ready, grant{lane: l, cost: cost})
			} else if l.waiting == 0 || l.waiting+cost <= t.terms.ahead {
				t.call(l)
			} else {
				break
			}
		}
	}
	t.unasked = t.unasked[:0]
	return len(t.ready) > 0
}

// call lets a caller wait for the first piece without one, and for those that are due soon after it.
func (t *turns) call(l *lane) {
	total := int64(0)
	for cost := t.unpaid(l); cost > 0 && (total == 0 || total+cost <= t.terms.together); cost = t.unpaid(l) {
		total += cost
		l.asked++
	}
	l.waiting += total
	t.wait(l, total)
}

// unpaid returns the cost of the first piece without a waiting caller, or 0. With Fair, which piece a turn releases is
// known for the first one only.
func (t *turns) unpaid(l *lane) int64 {
	for t.fair == nil && l.asked < len(l.pieces) {
		if cost := l.pieces[l.asked].cost; cost > 0 {
			return cost
		}
		l.asked++
	}
	switch {
	case t.fair != nil && l.asked == 0 && t.held > 0:
		return t.ring[0].pieces[0].cost
	case t.fair != nil && !t.bytes && l.asked < t.held:
		return 1
	}
	return 0
}

// wait waits for the turn of a cost: by a timer if it can be reserved, and otherwise by a goroutine.
func (t *turns) wait(l *lane, cost int64) {
	if t.terms.reserve == nil {
		t.callers.Go(func() {
			slot, err := t.terms.waitFor(t.ctx, l.key, cost)
			t.grant(grant{lane: l, cost: cost, slot: slot}, err)
		})
		return
	}
	left, err := t.terms.later(l.key, cost)
	if err != nil {
		t.grant(grant{}, err)
		return
	}
	time.AfterFunc(left, func() { t.grant(grant{lane: l, cost: cost}, nil) })
}

// grant ends a wait.
func (t *turns) grant(g grant, err error) {
	t.mu.Lock()
	if g.at = time.Now(); err == nil {
		t.granted = append(t.granted, g)
	} else if t.err == nil {
		t.err = err
	}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// next removes and returns the next piece whose turn has come.
func (t *turns) next() (p piece, ok bool) {
	for {
		if l := t.paying.lane; l != nil {
			if from := t.first(l); from != nil && l.paid >= from.pieces[0].cost {
				p = t.remove(from, l)
				p.slot = t.paying.slot
				return p, true
			}
		}
		if len(t.ready) == 0 {
			t.receive()
		}
		if len(t.ready) == 0 {
			return p, false
		}
		t.paying = t.ready[0]
		t.paying.lane.paid += t.paying.cost
		t.ready = t.ready[1:]
		t.list(t.paying.lane)
	}
}

// receive makes granted turns ready. If the filter has stalled, it takes late lines as of now and waits again for spare
// turns, so that the time of the stall does not return as a burst.
func (t *turns) receive() {
	t.mu.Lock()
	granted := t.granted
	t.granted = t.ready[:0]
	t.mu.Unlock()
	t.ready = granted[:0]
	now := time.Now()
	for _, g := range granted {
		if t.terms.spare && now.Sub(g.at) > maxLag {
			if g.lane.late.Equal(now) {
				t.wait(g.lane, g.cost)
				continue
			}
			g.lane.late = now
			t.terms.allow(g.lane.key, g.cost) // unless the limit has no time to lose
		}
		g.lane.waiting -= g.cost
		t.ready = append(t.ready, g)
	}
}

// first returns the lane whose first piece the units of l pay for, or nil.
func (t *turns) first(l *lane) *lane {
	switch {
	case t.fair != nil && len(t.ring) > 0:
		return t.ring[0]
	case t.fair == nil && len(l.pieces) > 0:
		return l
	}
	return nil
}

// remove removes the first piece of a lane, which the units of another one may pay for.
func (t *turns) remove(from, pays *lane) piece {
	p := from.pieces[0]
	from.pieces[0] = piece{}
	from.pieces = from.pieces[1:]
	pays.paid -= p.cost
	if pays.asked > 0 { // a piece without a cost passes unasked
		pays.asked--
	}
	t.held--
	t.size -= len(p.data)
	if t.fair != nil {
		t.ring = t.ring[1:]
		if len(from.pieces) > 0 {
			t.ring = append(t.ring, from)
		}
	}
	if len(from.pieces) == 0 {
		delete(t.lanes, from.key)
	}
	return p
}

// failed returns the error of a caller.
func (t *turns) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// begin begins the work on a line, and releases its slot when it is done.
func (t *turns) begin(p piece) {
	t.works.Go(func() {
		defer func() { _ = p.slot.Done(context.WithoutCancel(t.ctx)) }()
		if err := t.work(t.ctx, bytes.TrimSuffix(p.data, []byte("\n"))); err != nil {
			t.grant(grant{}, err)
		}
	})
}

// leave waits for callers and work to end, and gives back the slots of lines that were not begun.
func (t *turns) leave() {
	t.callers.Wait()
	t.works.Wait()
	t.mu.Lock() // a timer may still grant, without a slot
	granted := t.granted
	t.mu.Unlock()
	for _, g := range append(t.ready, granted...) {
		if g.slot != nil {
			_ = g.slot.Cancel(context.WithoutCancel(t.ctx))
		}
	}
}
