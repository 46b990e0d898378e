package histories

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weirflow/weir"
)

// The verbs of waiting callers and of those that change what they wait for.
const (
	join    verb = iota + reset + 1 // a caller begins to wait
	leave                           // the context of a caller ends
	resize                          // the capacity becomes the cost
	settle                          // a caller of a Queue cancels what it took: a window takes back only units of its own
	observe                         // the ends of all waits so far
)

// room is the capacity of the lines. It is small, so that callers wait.
const room = 4

// slots never refill.
type slots struct{ count int64 }

func (s slots) capacity() int64                 { return s.count }
func (s slots) now(u used, at int64) used       { return used{u.units, at} }
func (s slots) until(used, int64) time.Duration { return weir.Never }
func ofSlots(capacity int64) rules              { return slots{capacity} }
func ofBucket(capacity int64) rules             { return bucket{capacity} }
func ofWindow(capacity int64) rules             { return window{capacity, 3} }

// end is what became of a caller.
type end byte

const (
	granted end = 'g'
	left    end = 'l'
	tooMuch end = 'n' // its cost is above the capacity
)

// caller is a caller in line.
type caller struct {
	id    int
	keys  []int
	cost  int64
	place place
}

// standing is the model's state: units taken of keys, the callers in order of arrival, and the ends of the others.
type standing struct {
	at       int64
	keys     []used
	capacity int64
	line     []caller
	ends     map[int]end
	taken    map[int]int64 // the step in which a caller was granted what it took
	flows    flows
}

func (s *standing) clone() *standing {
	c := *s
	c.keys, c.line, c.ends, c.taken = slices.Clone(s.keys), slices.Clone(s.line), maps.Clone(s.ends), maps.Clone(s.taken)
	return &c
}

func (s *standing) equal(o *standing) bool {
	return s.at == o.at && s.capacity == o.capacity && slices.Equal(s.keys, o.keys) && maps.Equal(s.ends, o.ends) && maps.Equal(s.taken, o.taken) &&
		slices.EqualFunc(s.line, o.line, func(a, b caller) bool { return a.id == b.id && a.place == b.place }) && s.flows == o.flows
}

// until returns the time until a key admits n after some more units were taken.
func (s *standing) until(r rules, key int, n, taken int64) time.Duration {
	u := s.keys[key]
	if u.units += taken; fits(r, u, n) {
		return 0
	}
	return r.until(u, n)
}

// kept reports whether an earlier caller keeps a key of the i-th one: because the key does not admit it, or because the
// take would move the instant of the first one for the key to a later one.
func (s *standing) kept(r rules, i int) bool {
	c := s.line[i]
	for _, key := range c.keys {
		first := true
		for _, e := range s.line[:i] {
			if !slices.Contains(e.keys, key) {
				continue
			}
			if s.until(r, key, e.cost, 0) > 0 || first && s.until(r, key, e.cost, c.cost) > s.wait(r, e) {
				return true
			}
			first = false
		}
	}
	return false
}

// wait returns the time until all keys of a caller admit it.
func (s *standing) wait(r rules, c caller) (wait time.Duration) {
	for _, key := range c.keys {
		wait = max(wait, s.until(r, key, c.cost, 0))
	}
	return wait
}

// look ends the waits of callers whose turn it is, each time from the first caller on.
func (s *standing) look(r rules) {
	for i := 0; i < len(s.line); i++ {
		s.sort()
		c := s.line[i]
		switch {
		case i == 0 && c.cost > r.capacity():
			s.ends[c.id] = tooMuch
			s.remove(i)
		case s.wait(r, c) == 0 && !s.kept(r, i):
			s.ends[c.id], s.taken[c.id] = granted, s.at
			for _, key := range c.keys {
				s.keys[key].units += c.cost
			}
			s.serve(i)
		default:
			continue
		}
		i = -1
	}
}

// do applies a call and returns whether a Take was allowed.
func (s *standing) do(limit func(capacity int64) rules, c call) (allowed bool) {
	for s.at < c.at {
		s.at++
		for key := range s.keys {
			s.keys[key] = limit(s.capacity).now(s.keys[key], s.at)
		}
		s.look(limit(s.capacity))
	}
	switch c.verb {
	case join:
		switch {
		case s.ends[c.id] == left: // before it began
		case c.cost > s.capacity:
			s.ends[c.id] = tooMuch
		default:
			s.line = append(s.line, caller{c.id, c.keys, c.cost, s.enter(c.flow)})
		}
	case leave:
		i := slices.IndexFunc(s.line, func(w caller) bool { return w.id == c.id })
		if i >= 0 {
			s.remove(i)
		}
		if s.ends[c.id] == 0 {
			s.ends[c.id] = left
		}
	case resize:
		s.capacity = c.cost
	case record, settle:
		if w, ok := limit(s.capacity).(window); ok && c.verb == settle && s.taken[c.id]/w.steps != s.at/w.steps {
			break // units of another window are gone
		}
		for _, key := range c.keys {
			s.keys[key].units = max(0, s.keys[key].units+c.cost)
		}
	case take:
		waits := slices.ContainsFunc(s.line, func(w caller) bool { return slices.Contains(w.keys, c.keys[0]) })
		if allowed = !waits && fits(limit(s.capacity), s.keys[c.keys[0]], c.cost); allowed {
			s.keys[c.keys[0]].units += c.cost
		}
	}
	s.look(limit(s.capacity))
	return allowed
}

// seen is the answer to a call: whether a Take was allowed, or the ends of all waits.
type seen struct {
	allowed bool
	ends    map[int]end
}

// waiting returns the porcupine model of a line before a number of keys.
func waiting(limit func(capacity int64) rules, keys int) porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			return &standing{keys: make([]used, keys), capacity: room, ends: map[int]end{}, taken: map[int]int64{}}
		},
		Equal: func(a, b any) bool { return a.(*standing).equal(b.(*standing)) },
		Step: func(state, input, output any) (bool, any) {
			next, c, got := state.(*standing).clone(), input.(call), output.(seen)
			allowed := next.do(limit, c)
			switch c.verb {
			case take:
				return allowed == got.allowed, next
			case observe:
				return maps.Equal(next.ends, got.ends), next
			}
			return true, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}
