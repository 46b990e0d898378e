package redislimit

import (
	"cmp"
	"container/list"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// standing is the callers of this process that stand in lines.
type standing struct {
	mu      sync.Mutex
	process string            // 8 bytes that name it in lines and channels
	stands  map[string]*stand // by what they ask for
	last    float64           // the number of the newest ticket
	signals signals
	leaving atomic.Int64 // tickets that leave

	emptied map[string]*stand // of which Redis may still have tickets: see signalled
	oldest  []*stand          // the same, in the order in which their last caller has left
}

// ticketLife is how long a ticket stays in line without a question of its stand, with some time to spare: see line.lua.
const ticketLife = 5 * time.Second

// stand is the callers that ask for the same keys. The lock of standing guards it.
type stand struct {
	engine  *Engine
	asks    string
	lines   []string
	slots   part      // some of them
	tickets list.List // of *ticket, the oldest first
	taken   float64   // the newest ticket that was admitted
	stayed  bool      // a ticket may have stayed in line: its leaving may be lost, or come before its question
	empty   time.Time // since when there is no ticket
}

// ticket is the place of one caller. The lock of standing guards it.
type ticket struct {
	stand    *stand
	number   float64
	element  *list.Element // nil once the caller has gone
	inside   bool          // it is in the line, or may be
	refusals int
	leads    bool          // it was its turn when it asked last
	next     time.Time     // when to ask again, if it leads or is the first of its stand
	called   bool          // it has to ask now
	wake     chan struct{} // receives when called or next has changed
}

// StandInLine returns a place for a caller that waits for slots. It returns nil if the requests take none, have an
// identity, or are on several lanes of a cluster. weir.LineKeeper describes it.
func (e *Engine) StandInLine(requests ...weir.Request) weir.LinePlace {
	identity, err := enginekit.IdentityOf(enginekit.Take, requests)
	if err != nil || identity != "" {
		return nil
	}
	merged, err := enginekit.Merge(enginekit.Take, requests)
	if err != nil {
		return nil
	}
	parts, at, err := e.parts(nil, merged)
	if err != nil || !at.oneLane {
		return nil
	}
	lines, asks := linesOf(parts)
	if len(lines) == 0 || len(lines) > mostLines {
		return nil
	}
	return e.standing.enter(e, parts, lines, asks)
}

// enter returns a ticket that Redis has not seen.
func (all *standing) enter(e *Engine, parts []part, lines []string, asks string) *ticket {
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.stands[asks]
	if s == nil {
		s = &stand{engine: e, asks: asks, lines: lines}
		for i := range parts {
			if p := &parts[i]; p.limit.kind == kindSlots && p.line() == lines[0] {
				s.slots = parts[i]
			}
		}
		if all.stands == nil {
			all.stands, all.process = map[string]*stand{}, rand.Text()[:8]
		}
		all.stands[asks] = s
	}
	all.last++
	t := &ticket{stand: s, number: all.last, wake: make(chan struct{}, 1)}
	t.element = s.tickets.PushBack(t)
	return t
}

func (s *stand) first() *ticket { return s.tickets.Front().Value.(*ticket) }

// poke makes a waiting caller look again.
func (t *ticket) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// call makes the caller ask now.
func (t *ticket) call() {
	t.called = true
	t.poke()
}

// callAfter makes the caller ask after a time, unless it asks before.
func (t *ticket) callAfter(d time.Duration) {
	if at := time.Now().Add(min(max(d, 0), longestSleep)); !t.leads || at.Before(t.next) {
		t.leads, t.next = true, at
	}
	t.poke()
}

// Wait returns when the caller should ask again: when it is called, and as the first of its stand within a second.
func (t *ticket) Wait(ctx context.Context) error {
	timer := time.NewTimer(longestSleep)
	defer timer.Stop()
	for {
		ask, pause := t.due()
		if ask {
			return nil
		}
		var due <-chan time.Time
		if pause > 0 {
			timer.Reset(pause)
			due = timer.C
		}
		select {
		case <-t.wake:
		case <-due:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// due reports whether the caller should ask now, and otherwise after what time. 0 means that it is not the first of its
// stand, which asks for it.
func (t *ticket) due() (now bool, pause time.Duration) {
	all := &t.stand.engine.standing
	all.mu.Lock()
	defer all.mu.Unlock()
	if t.called {
		return true, 0
	}
	if !t.leads && t.stand.first() != t {
		return false, 0
	}
	pause = time.Until(t.next)
	return pause <= 0, pause
}

// gone ends the place of a caller that was admitted.
func (t *ticket) gone() {
	all := &t.stand.engine.standing
	all.mu.Lock()
	defer all.mu.Unlock()
	t.stand.taken = max(t.stand.taken, t.number)
	t.remove()
}

// remove ends the place. The next caller of the stand asks when this one would have. The caller holds the lock.
func (t *ticket) remove() {
	s := t.stand
	if t.element == nil {
		return
	}
	first := s.first() == t
	s.tickets.Remove(t.element)
	t.element = nil
	switch {
	case s.tickets.Len() == 0:
		s.engine.standing.end(s)
	case first:
		next := s.first()
		next.next = time.Now().Add(s.hears().pause(1, longestSleep))
		if !t.next.IsZero() {
			next.next = earlier(next.next, t.next)
		}
		next.poke()
	}
}

// end ends a stand whose last caller has gone. The engine knows it for some time if Redis may have a ticket of it.
func (all *standing) end(s *stand) {
	delete(all.stands, s.asks)
	now := time.Now()
	for len(all.oldest) > 0 && (len(all.oldest) >= mostUndoing || now.Sub(all.oldest[0].empty) > ticketLife) {
		if old := all.oldest[0]; all.emptied[old.asks] == old {
			delete(all.emptied, old.asks)
		}
		all.oldest = all.oldest[1:]
	}
	if !s.stayed {
		return
	}
	if all.emptied == nil {
		all.emptied = map[string]*stand{}
	}
	s.empty = now
	all.emptied[s.asks], all.oldest = s, append(all.oldest, s)
}

// signalled returns the ticket that a signal names. If its caller has left and Redis has not heard of it, the ticket leaves
// now, so that the next caller has its turn. The caller holds the lock.
func (all *standing) signalled(asks string, number float64) *ticket {
	s := all.stands[asks]
	if s == nil {
		s = all.emptied[asks]
	}
	if s == nil {
		return nil
	}
	for e := s.tickets.Front(); e != nil; e = e.Next() {
		if t := e.Value.(*ticket); t.number == number {
			return t
		}
	}
	if number != s.taken {
		s.engine.leaveLine(s.slots, s.in(lineLeaves, &ticket{number: number}))
	}
	return nil
}

// Leave gives the place up. The engine tells Redis in the background, again and again if that fails. Redis may carry it
// out before a question that was lost. Then the ticket leaves when it is signalled, or with the next question of the stand,
// or dies.
func (t *ticket) Leave() {
	s := t.stand
	all := &s.engine.standing
	all.mu.Lock()
	stood := t.inside && t.element != nil
	s.stayed = s.stayed || stood
	t.remove()
	q := s.in(lineLeaves, t)
	all.mu.Unlock()
	if stood {
		s.engine.leaveLine(s.slots, q)
	}
}

// freed makes the first callers of this process ask for slots that it has freed, if they hear no signals.
func (all *standing) freed(parts []part) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.signals.work() {
		return
	}
	for _, s := range all.stands {
		if slices.ContainsFunc(parts, func(p part) bool {
			return p.limit.kind == kindSlots && p.cost < 0 && slices.Contains(s.lines, p.line())
		}) {
			s.first().call()
		}
	}
}

// leaving is a ticket that leaves its lines.
type leaving struct {
	engine *Engine
	slots  part
	line   *inLine
	until  time.Time // when it dies
	pause  time.Duration
	task   task
}

// leaveLine takes a ticket out of its lines.
func (e *Engine) leaveLine(slots part, q *inLine) {
	l := &leaving{engine: e, slots: slots, line: q, until: time.Now().Add(ticketLife), pause: undoPause}
	l.task.run, l.task.dropped = func(time.Time) { l.send() }, l.end
	if e.standing.leaving.Add(1) > mostUndoing {
		l.until = time.Time{}
	}
	l.send()
}

func (l *leaving) send() {
	s := &submission{done: make(chan struct{}, 1), decisions: []decision{{op: opPeek, parts: []part{l.slots}, line: l.line}}}
	unheard := &l.engine.stats.unheard
	unheard.Add(1)
	s.after = func() {
		l.answered(cmp.Or(s.err, s.decisions[0].err))
		unheard.Add(-1)
	}
	l.engine.committer(l.slots.lane).send(s)
}

// answered plans the next try, if one is needed.
func (l *leaving) answered(err error) {
	next := time.Now().Add(l.pause)
	l.pause = min(2*l.pause, longestSleep)
	if err == nil || next.After(l.until) {
		l.end()
		return
	}
	l.engine.background.at(next, &l.task)
}

func (l *leaving) end() { l.engine.standing.leaving.Add(-1) }

// close makes all waiting callers ask, and so learn that the engine is closed.
func (all *standing) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.signals.close()
	for _, s := range all.stands {
		for e := s.tickets.Front(); e != nil; e = e.Next() {
			e.Value.(*ticket).call()
		}
	}
}
