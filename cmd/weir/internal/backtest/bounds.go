package backtest

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/weirflow/weir"
)

// A stamp says that a request was decided at some instant from its event's from until before its to. bounds finds the
// events that are decided alike for all instants of all events within their bounds, in any order that leaves. keys.go
// finds those that need no engine. For the others it keeps two engines for each key, which enclose all states that the
// key may have:
//
//   - the strict one has counted every request that may have been admitted before, as late as possible,
//   - the lenient one only those that were certainly admitted, certainly before, and as early as possible.
//
// An event that the lenient engine refuses at the latest instant was refused. One that the strict engine admits at the
// earliest, together with all requests that may have come before within their bounds, was admitted. All other decisions
// are unsure. That is sound for limits that admit no less later, and whose keys are no fuller, at a later instant, for
// units taken less or earlier: all limits of Weir, except logs that count refused attempts or keep a gap. Their
// decisions are all unsure, like those of keys that may have refused a request in whose place another rule was asked.
//
// The events begin and end in one sweep of time. An event that began and has not ended is pending at its keys. When an
// event ends, its keys must have room for everything pending, at the last instant that the strict engine counted
// something, or at the beginning of the pending events if that is later. If they have, everything pending is admitted
// from then on, as long as no event that begins later finds no room (failed).
type bounds struct {
	*keyring
	strict, lenient *world
	turn            uint32 // counts the ends of events
	states          []eventState
}

// eventState is the state of an event that may be unsure.
type eventState struct {
	event   uint32
	refused bool   // certainly
	began   uint32 // at this turn
}

// unsure calls each with every event whose decision is unsure.
func (t *Traffic) unsure(r *result, each func(event int, o outcome)) error {
	b, at := t.newBounds(r), r.at
	if len(b.states) == 0 {
		return nil
	}
	starts, ends := b.order(func(s *eventState) int64 { return t.events[s.event].from() }), b.order(func(s *eventState) int64 { return t.events[s.event].to() })
	for len(ends) > 0 {
		if len(starts) > 0 {
			if s := &b.states[starts[0]]; t.events[s.event].from() < t.events[b.states[ends[0]].event].to() {
				starts = starts[1:]
				if err := b.begin(s, &t.events[s.event], t.outcome(at, s)); err != nil {
					return err
				}
				continue
			}
		}
		s := &b.states[ends[0]]
		ends = ends[1:]
		sure, err := b.end(s, &t.events[s.event], t.outcome(at, s))
		if err != nil {
			return err
		}
		if !sure {
			each(int(s.event), t.outcome(at, s))
		}
	}
	return nil
}

func (t *Traffic) outcome(at int, s *eventState) outcome {
	return t.tries[at].outcomes.of(t.numbers[at][s.event])
}

// newBounds finds the events that need engines.
func (t *Traffic) newBounds(r *result) *bounds {
	b := &bounds{keyring: r.keyring, strict: newWorld(), lenient: newWorld(), turn: 1}
	for i, number := range t.numbers[r.at] {
		if !b.quiet[number] && len(b.outcomes.of(number).asks) > 0 {
			b.states = append(b.states, eventState{event: uint32(i)})
		}
	}
	return b
}

// order returns the places of the states in order of a time.
func (b *bounds) order(of func(s *eventState) int64) []uint32 {
	order := make([]uint32, len(b.states))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(of(&b.states[x]), of(&b.states[y])), cmp.Compare(x, y))
	})
	return order
}

// begin finds out whether an event is certainly refused. Otherwise it is pending until its end.
func (b *bounds) begin(s *eventState, e *event, o outcome) error {
	from, to := e.from(), e.to()
	for i := range o.asks {
		k := b.key(&o, i)
		if k.never || k.odd || k.chained || k.mayBeBanned() {
			continue
		}
		if err := b.heal(k, from, b.alone(&o, i)); err != nil {
			return err
		}
		fits, err := b.lenient.peek(to-1, b.alone(&o, i))
		if err != nil {
			return err
		}
		s.refused = s.refused || !fits
	}
	s.began = b.turn
	if s.refused {
		return nil
	}
	for i := range o.asks {
		k := b.key(&o, i)
		if k.n == 0 {
			k.began = from
		}
		k.n++
		k.pending = min(k.pending, math.MaxInt64-o.requests[i].Cost) + o.requests[i].Cost
	}
	return nil
}

// alone returns a request without what is asked in its place: the engines of bounds try no pool.
func (b *bounds) alone(o *outcome, i int) weir.Request {
	q := b.keyed(o, o.requests[i], o.asks[i], nil)
	q.Otherwise = nil
	return q
}

// heal resets a key in the strict engine, which may have counted more than fits, once everything is certainly forgotten.
func (b *bounds) heal(k *boundKey, from int64, q weir.Request) error {
	if k.n > 0 || k.strict.at == math.MinInt64 || from-k.strict.at < int64(k.facts.reset) {
		return nil
	}
	k.strict, k.full = counted{math.MinInt64, math.MinInt64}, false
	return b.strict.Reset(context.Background(), q)
}

// end reports whether the decision on an event is sure.
func (b *bounds) end(s *eventState, e *event, o outcome) (sure bool, err error) {
	if s.refused {
		return true, nil
	}
	b.turn++
	if sure, err = b.room(s, &o); err != nil {
		return false, err
	}
	for i := range o.asks {
		k := b.key(&o, i)
		k.n--
		k.pending -= o.requests[i].Cost
		if k.never {
			continue
		}
		d, err := b.strict.record(&k.strict, e.to()-1, b.alone(&o, i))
		if err != nil {
			return false, err
		}
		k.full = k.full || d.Unrecorded
		if sure && !b.lenient.passed(&k.lenient, e.from()) {
			if _, err := b.lenient.record(&k.lenient, e.from(), b.alone(&o, i)); err != nil {
				return false, err
			}
		}
	}
	return sure, nil
}

// room reports whether the keys of an event have had room for all that was pending, since the event began.
func (b *bounds) room(s *eventState, o *outcome) (sure bool, err error) {
	sure = true
	for i := range o.asks {
		k := b.key(o, i)
		if k.never {
			continue
		}
		at := max(k.began, k.strict.at)
		all := b.alone(o, i)
		all.Cost = k.pending
		fits, err := b.strict.peek(at, all)
		if err != nil {
			return false, err
		}
		if !fits || k.full || b.strict.evicted(&k.strict, at) {
			k.failed = b.turn
		}
		sure = sure && !k.odd && !k.chained && !k.mayBeBanned() && k.failed <= s.began
	}
	return sure && !o.open, nil
}

// world is an engine that counts at instants of its caller.
type world struct {
	*weir.Memory
	now  int64
	last int64 // the latest instant that it counted something
}

// counted is the state of a key in a world.
type counted struct{ at, idle int64 } // when it counted something last, and when the key is idle again

func newWorld() *world {
	w := &world{last: math.MinInt64}
	w.Memory = weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return w.now }, MaxKeys: math.MaxInt32})
	return w
}

func (w *world) peek(at int64, q weir.Request) (bool, error) {
	w.now = at
	d, err := w.Peek(context.Background(), q)
	return d.Allowed, err
}

func (w *world) record(k *counted, at int64, q weir.Request) (weir.Decision, error) {
	w.now, w.last = at, max(w.last, at)
	d, err := w.Record(context.Background(), q)
	k.at, k.idle = at, at+min(int64(d.ResetAfter), math.MaxInt64-max(at, 0))
	return d, err
}

// passed reports whether the engine would count something later than at an instant: it has counted something of the key, or it may
// have evicted the key, since then.
func (w *world) passed(k *counted, at int64) bool {
	return at < k.at || at < w.last && k.idle <= w.last
}

// evicted reports whether the engine may have evicted the key after an instant when it was not yet idle.
func (w *world) evicted(k *counted, at int64) bool { return at < k.idle && k.idle <= w.last }
