package pace

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// local is the order of callers that wait for the memory engine, whose answers cost nothing. No caller asks in turn:
// every event looks at the callers in order of arrival. A caller goes when all its keys admit its cost and no earlier
// caller keeps one of them. An earlier caller keeps a key that does not admit its own cost. The first caller for a key
// also keeps it against a take that would move its own instant to a later one. So callers with the same requests go in
// order of arrival, the first is never put off, and a key that several groups of callers share is used whole.
//
// The callers with the same requests are a line. Lines whose next caller may be admitted are in ready, by its arrival; the
// others are in later, by the instant before which their keys do not admit it. The lock of the queue guards all.
type local struct {
	queue  *Queue
	memory *weir.Memory
	ready  lineHeap
	later  lineHeap
	shut   keyHeap // the keys that are shut
	keys   map[string]*localKey
	timer  *time.Timer
	wake   time.Time // when the timer fires; zero if it is not set
}

func newLocal(q *Queue, memory *weir.Memory) *local {
	return &local{
		queue: q, memory: memory, keys: map[string]*localKey{},
		ready: lineHeap{less: byArrival, at: func(l *queueLine) *int { return &l.inReady }},
		later: lineHeap{less: byInstant, at: func(l *queueLine) *int { return &l.inLater }},
	}
}

// join adds p to the line of its keys and looks whether it goes at once. It refuses p if its keys do not admit it before
// its deadline.
func (l *local) join(ctx context.Context, p *place) error {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	if l.queue.waiting >= l.queue.capacity {
		return weir.ErrQueueFull
	}
	name, mixed := l.lineOf(p)
	line := l.queue.lines[name]
	if err := l.hopeless(ctx, p, line); err != nil {
		return err
	}
	p.deadline, _ = ctx.Deadline()
	if line == nil {
		line = l.queue.newLine(name, p.requests)
		line.mixed = mixed
		line.inReady, line.inLater, line.inParked = -1, -1, -1
		if mixed {
			l.gather(line, p)
		}
	}
	l.enter(line, p)
	l.look()
	return nil
}

// enter adds p to a line.
func (l *local) enter(line *queueLine, p *place) {
	empty := line.places.length == 0
	line.add(p)
	l.uses(line, p, empty)
	if empty || line.first() == p {
		l.refile(line)
	}
}

// lineOf names the line of p. Callers with the same requests are a line, and so are all callers for the same keys, with
// mixed requests, while one of them is in a flow.
func (l *local) lineOf(p *place) (name string, mixed bool) {
	keys := keysOf(p.requests)
	flows := "flows of " + keys
	if p.flow != "" || l.queue.lines[flows] != nil {
		return flows, true
	}
	for i := range p.requests {
		q := &p.requests[i]
		keys += fmt.Sprintf("\x00%p %d", q.Rule, q.Cost)
	}
	return keys, false
}

// hopeless refuses a caller that can never go, or that a single key does not admit before its deadline, after the callers
// of its line. Callers of other lines may go later.
func (l *local) hopeless(ctx context.Context, p *place, line *queueLine) error {
	d, err := l.memory.Peek(ctx, p.requests...)
	if err != nil {
		return err
	}
	if err := l.tooLate(ctx, p, d); err != nil {
		return err
	}
	if _, bounded := ctx.Deadline(); !bounded || line == nil || line.mixed || len(line.slots) > 0 {
		return nil
	}
	for i := range line.uses {
		q := onKey(p.requests, line.uses[i].name)
		ahead := min(int64(line.places.length), weir.MaxCount/max(q.Cost, 1)) * q.Cost
		if d, err := l.memory.PeekAfter(ctx, ahead, q); err == nil && !d.Allowed {
			if err := l.tooLate(ctx, p, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// tooLate refuses a caller that was refused, if its deadline is before the instant that the engine names.
func (l *local) tooLate(ctx context.Context, p *place, d weir.Decision) error {
	if d.Allowed {
		return nil
	}
	return hopeless(ctx, p, d)
}

// refile puts a line whose first caller has changed among those to look at.
func (l *local) refile(line *queueLine) {
	for i := range line.uses {
		heap.Fix(&line.uses[i].key.lines, line.uses[i].place)
	}
	l.later.remove(line)
	line.unpark()
	if line.inReady >= 0 {
		heap.Fix(&l.ready, line.inReady)
	} else {
		heap.Push(&l.ready, line)
	}
	for _, key := range line.relieve() {
		l.advance(key)
	}
}

// remove removes p from its line.
func (l *local) remove(p *place) {
	line := p.line
	first := line.first() == p
	var relieved []*localKey
	if line.places.length == 1 { // before p leaves, because heaps compare first callers
		l.ready.remove(line)
		l.later.remove(line)
		line.unpark()
		relieved = line.relieve()
		for i := range line.uses {
			heap.Remove(&line.uses[i].key.lines, line.uses[i].place)
		}
	}
	line.leave(p)
	for i := range line.uses {
		u := &line.uses[i]
		q := onKey(p.requests, u.name)
		ask := asked{q.Rule, q.Cost}
		if u.key.asks[ask]--; u.key.asks[ask] == 0 {
			delete(u.key.asks, ask)
		}
		if len(u.key.asks) == 0 {
			l.unshut(u.key)
			delete(l.keys, u.name)
		}
	}
	for _, key := range relieved {
		l.advance(key)
	}
	switch {
	case line.places.length == 0:
		l.queue.removeLine(line)
	case first:
		l.refile(line)
	}
}

// look lets all callers go that may, and sets the timer for the next instant at which one may.
func (l *local) look() {
	now := time.Now()
	for l.later.Len() > 0 && !l.later.lines[0].notBefore.After(now) {
		heap.Push(&l.ready, heap.Pop(&l.later))
	}
	for len(l.shut) > 0 && !l.shut[0].shut.After(now) {
		l.open(l.shut[0])
	}
	look := looking{local: l, now: now, next: weir.Never}
	for l.ready.Len() > 0 && !look.over {
		look.at(heap.Pop(&l.ready).(*queueLine))
	}
	for _, line := range look.blocked {
		heap.Push(&l.ready, line)
	}
	look.reopen()
	if l.later.Len() > 0 {
		look.next = min(look.next, l.later.lines[0].notBefore.Sub(now))
	}
	if len(l.shut) > 0 {
		look.next = min(look.next, l.shut[0].shut.Sub(now))
	}
	l.setTimer(now, look.next)
}

// setTimer sets the timer for an instant after now, unless it fires before anyway.
func (l *local) setTimer(now time.Time, after time.Duration) {
	if after == weir.Never {
		return
	}
	at := now.Add(after)
	switch {
	case !l.wake.IsZero() && !l.wake.After(at):
		return
	case l.timer == nil:
		l.timer = time.AfterFunc(after, l.fire)
	default:
		l.timer.Reset(after)
	}
	l.wake = at
}

func (l *local) fire() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.wake = time.Time{}
	l.look()
}

// returned looks again at the lines of keys whose units came back.
func (l *local) returned(keys []string) {
	for _, name := range keys {
		if key := l.keys[name]; key != nil {
			l.reconsider(key)
		}
	}
	l.look()
}

// reconsider makes the lines of a key ready.
func (l *local) reconsider(key *localKey) {
	l.open(key)
	for _, line := range key.lines.lines {
		if line.inLater >= 0 {
			l.later.remove(line)
			heap.Push(&l.ready, line)
		}
	}
}

// takeFree takes p's requests if no caller waits for one of its keys. done is false if p has to wait.
func (l *local) takeFree(p *place) (done bool, err error) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	for i := range p.requests {
		if len(l.keys) > 0 && l.keys[keyOf(&p.requests[i])] != nil {
			return false, nil
		}
	}
	err = p.takeNow(context.Background(), l.memory)
	return err != nil || p.decision.Allowed, err
}

// wait waits for p's turn in the line of its keys.
func (l *local) wait(ctx context.Context, p *place) error {
	if done, err := l.takeFree(p); done {
		return err
	}
	if err := l.join(ctx, p); err != nil {
		return err
	}
	select {
	case <-p.turn:
		return p.err
	case <-ctx.Done():
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	select {
	case <-p.turn:
		return p.err
	default:
	}
	l.remove(p)
	l.look()
	return ctx.Err()
}
