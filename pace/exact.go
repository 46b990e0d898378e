package pace

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// exact is the strategy for the memory engine, whose answers cost nothing. No caller asks in turn: every event looks at
// the callers in order of arrival. A caller goes when all its keys admit its cost and no earlier caller keeps one of them.
// An earlier caller keeps a key that does not admit its own cost. The first caller for a key also keeps it against a take
// that would move its own instant to a later one. So callers with the same requests go in order of arrival, the first is
// never put off, and a key that several groups of callers share is used whole.
//
// The callers with the same requests are a line. Lines whose first caller may be admitted are in ready, by its arrival. A
// line whose first caller cannot go because of one key is parked there, so that a look does not go through all lines that
// wait for one key. While no line shuts the key, one of those that were parked is ready in place of the others.
type exact struct {
	queue  *Queue
	memory *weir.Memory
	lines  map[string]*exactLine
	ready  fair.Heap[*exactLine]
	later  *agenda                // when keys open, and the next look
	keys   map[string]*exactKey   // by key and its limits
	names  map[string][]*exactKey // the same, by key
	looks  appointment
}

func newExact(q *Queue, memory *weir.Memory) *exact {
	l := &exact{
		queue: q, memory: memory, lines: map[string]*exactLine{}, keys: map[string]*exactKey{}, names: map[string][]*exactKey{},
		ready: fair.NewHeap(byArrival, func(l *exactLine) *int { return &l.inReady }),
		looks: newAppointment(func() {}),
	}
	l.later = newAgenda(&q.mu, l.look)
	return l
}

// join adds p to the line of its keys and looks whether it goes at once. It refuses p if its keys do not admit it before
// its deadline.
func (l *exact) join(p *caller) error {
	if done, err := l.takeFree(p); done {
		if err == nil {
			l.queue.end(p, nil)
			if len(l.names) > 0 {
				l.returned(namesIn(p.requests)) // of other limits: the take can convert the state to a faster rate
			}
		}
		return err
	}
	name, mixed := l.lineOf(p)
	line := l.lines[name]
	if err := l.hopeless(p, line); err != nil {
		return err
	}
	if err := l.queue.enter(p); err != nil {
		return err
	}
	others := []*caller{p}
	if line == nil && mixed {
		others = append(l.gather(p), p)
	}
	if line == nil {
		line = l.newLine(name, mixed, p)
	}
	for _, p := range others {
		l.enter(line, p)
	}
	l.look()
	return nil
}

// takeFree takes p's requests if no caller waits for one of its keys. done is false if p has to wait.
func (l *exact) takeFree(p *caller) (done bool, err error) {
	for i := range p.requests {
		if len(l.keys) > 0 && l.keys[keyOf(&p.requests[i])] != nil {
			return false, nil
		}
	}
	err = guarded(func() error { return p.takeNow(context.Background(), l.queue.engine) })
	return err != nil || p.decision.Allowed, err
}

// leave removes p.
func (l *exact) leave(p *caller) {
	l.remove(p)
	l.look()
}

// enter adds p to a line.
func (l *exact) enter(line *exactLine, p *caller) {
	p.line = line
	p.enter(&line.callers)
	for i := range line.uses {
		line.uses[i].key.asks[p.asks(line.uses[i].key)]++
	}
	if line.first() == p {
		l.refile(line)
	}
}

// lineOf names the line of p. Callers with the same requests are a line, and so are all callers for the same keys, with
// mixed requests, while one of them is in a flow.
func (l *exact) lineOf(p *caller) (name string, mixed bool) {
	keys := keysOf(p.requests)
	flows := "flows of " + keys
	if p.flow != "" || l.lines[flows] != nil {
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
func (l *exact) hopeless(p *caller, line *exactLine) error {
	d, err := l.peek(p.requests...)
	if err != nil {
		return err
	}
	if err := p.refusedBy(d); err != nil {
		return err
	}
	if p.deadline.IsZero() || line == nil || line.mixed || line.slots {
		return nil
	}
	for i := range line.uses {
		q := onKey(p.requests, line.uses[i].key.name)
		ahead := min(int64(line.callers.Len()), weir.MaxCount/max(q.Cost, 1)) * q.Cost
		if d, err := l.peekAfter(ahead, q); err == nil {
			if err := p.refusedBy(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// look lets all callers go that may, and plans the next look for the instant when another one may.
func (l *exact) look() {
	now := time.Now()
	l.later.due(now)
	look := looking{exact: l, now: now, next: weir.Never}
	for l.ready.Len() > 0 {
		look.at(l.ready.Pop())
	}
	look.release()
	if at := now.Add(look.next); look.next < weir.Never && (!l.looks.planned() || at.Before(l.looks.at)) {
		l.later.plan(&l.looks, at)
	}
}

// returned looks again at the lines of keys whose units came back.
func (l *exact) returned(names []string) {
	for _, name := range names {
		for _, key := range l.names[name] {
			l.open(key)
		}
	}
	l.look()
}
