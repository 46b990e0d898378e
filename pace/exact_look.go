package pace

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// looking is one look at the ready lines, in order of arrival.
type looking struct {
	*exact
	now     time.Time
	next    time.Duration // until an instant when a blocked caller may go
	blocked []*exactLine  // lines that earlier callers keep from going; they are ready again in the next look
}

// at looks at a line, which is in none of the heaps.
func (l *looking) at(line *exactLine) {
	p := line.first()
	defer l.advanceAll(line)
	if key := line.shut(); key != nil {
		l.park(line, key, false)
		return
	}
	d, err := l.peek(p.requests...)
	switch {
	case err != nil:
		l.grant(p, err)
	case !d.Allowed && !waitsForSlots(p.requests, d) && p.tooLate(d.RetryAfter) != nil:
		l.grant(p, p.tooLate(d.RetryAfter))
	case !d.Allowed:
		l.refused(line, d)
	case l.isKept(line, p):
		l.blocked = append(l.blocked, line)
	default:
		l.take(p)
	}
}

// refused parks a line at the key that refuses its first caller.
func (l *looking) refused(line *exactLine, d weir.Decision) {
	for i := range line.uses {
		if u := &line.uses[i]; u.key.of == d.Rule+"\x00"+d.Key {
			if l.park(line, u.key, true); u.key.shutBy == line {
				l.later.plan(&u.key.opens, l.now.Add(min(d.RetryAfter, time.Hour)))
			}
		}
	}
}

// peek returns the answer that a take would get. A clock that panics ends one wait.
func (l *exact) peek(requests ...weir.Request) (d weir.Decision, err error) {
	err = guarded(func() error { d, err = l.memory.Peek(context.Background(), requests...); return err })
	return d, err
}

// peekAfter does so after a cost of the key has been taken.
func (l *exact) peekAfter(cost int64, q weir.Request) (d weir.Decision, err error) {
	err = guarded(func() error { d, err = l.memory.PeekAfter(context.Background(), cost, q); return err })
	return d, err
}

// isKept reports whether an earlier caller keeps one of p's keys. All of them admit p.
func (l *looking) isKept(line *exactLine, p *caller) bool {
	for i := range line.uses {
		u := &line.uses[i]
		alike := len(u.key.asks) == 1 // so what admits p admits every caller
		if !alike && l.lacks(u, p) {
			if !u.key.hasFlows() { // a later caller of a flow can be before the one that lacks
				l.park(line, u.key, true)
			}
			return true
		}
		first := u.key.lines.First().first()
		if first.Arrival >= p.Arrival || !l.putsOff(first, u, onKey(p.requests, u.key.name).Cost) {
			continue
		}
		if alike {
			l.park(line, u.key, true)
		}
		return true
	}
	return false
}

func (k *exactKey) hasFlows() bool {
	return slices.ContainsFunc(k.lines.All(), func(l *exactLine) bool { return l.mixed })
}

// lacks reports whether the key does not admit a caller of another line that came before p. In its own line p is next.
func (l *looking) lacks(u *exactUse, p *caller) bool {
	admits := map[asked]bool{}
	for _, line := range u.key.lines.All() {
		if line == p.line {
			continue
		}
		for e := range line.asking(p.Arrival) {
			ask := e.asks(u.key)
			if admits[ask] {
				continue
			}
			if d, err := l.peek(onKey(e.requests, u.key.name)); err == nil && !d.Allowed {
				l.again(d.RetryAfter)
				return true
			}
			admits[ask] = true
		}
	}
	return false
}

// asking yields the callers that arrived before an arrival, or the first of them if the others ask for the same.
func (line *exactLine) asking(before uint64) iter.Seq[*caller] {
	return func(yield func(*caller) bool) {
		for e := range line.callers.Firsts {
			for ; e != nil && e.Arrival < before; e = e.Next() {
				if !yield(e) || !line.mixed {
					return
				}
			}
		}
	}
}

// putsOff reports whether a take of cost from a key would move the instant of its first caller to a later one.
func (l *looking) putsOff(first *caller, u *exactUse, cost int64) bool {
	d, err := l.peek(first.requests...)
	if err != nil {
		return false
	}
	after, err := l.peekAfter(cost, onKey(first.requests, u.key.name))
	if err != nil || after.RetryAfter <= d.RetryAfter {
		return false
	}
	if d.RetryAfter > 0 {
		l.again(d.RetryAfter)
	} else { // a still earlier caller keeps it from going, until there is enough for both
		l.again(after.RetryAfter)
	}
	return true
}

// again looks again after a time, when an earlier caller may no longer keep its key. The engine tells of units that come back before.
func (l *looking) again(after time.Duration) { l.next = min(l.next, after) }

// take takes p's requests, which are admitted.
func (l *looking) take(p *caller) {
	err := guarded(func() error { return p.takeNow(context.Background(), l.queue.engine) })
	if err == nil && !p.decision.Allowed { // another caller was faster, or a function around the engine refused
		key := p.decision.Rule + "\x00" + p.decision.Key
		known := slices.ContainsFunc(p.line.uses, func(u exactUse) bool { return u.key.of == key })
		if err = p.refusedBy(p.decision); err == nil && known && p.decision.RetryAfter > 0 {
			l.refused(p.line, p.decision)
			return
		}
		err = cmp.Or(err, errNonsense)
	}
	l.grant(p, err)
}

// grant lets p go, or fail. Its line is in none of the heaps. Blocked callers may go now, because p has left, or the take has
// delayed the one that kept a key.
func (l *looking) grant(p *caller, err error) {
	p.served = err == nil
	for i := range p.line.uses {
		key := p.line.uses[i].key
		for _, other := range l.names[key.of] { // a take under another rule can convert the state to a faster rate
			if other != key {
				l.open(other)
			}
		}
	}
	l.remove(p)
	l.queue.end(p, err)
	l.release()
}

// release makes the blocked lines ready.
func (l *looking) release() {
	blocked := l.blocked
	l.blocked = nil
	for _, line := range blocked {
		l.unpark(line)
		l.ready.Put(line)
	}
}
