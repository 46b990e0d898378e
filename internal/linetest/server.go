// Package linetest is an engine that keeps lines, for tests. It follows the rules of docs/why/queues.md step by step,
// over a memory engine that stands for the server, and a network that can be slow or lose messages. The script of
// redislimit follows the same rules, and a test compares both.
package linetest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// The times of a line.
const (
	life    = time.Second           // of an entry that is not heard of
	theta   = 20 * time.Millisecond // callers whose arrivals differ by less are of one age
	grace   = 200 * time.Millisecond
	soonest = 20 * time.Millisecond // between two bookings, after a refusal
)

// Server is what the processes share.
type Server struct {
	Memory *weir.Memory

	mu     sync.Mutex
	calls  int
	grants int
	keys   map[string]*key
	leases map[uint64]bool // that are held
}

// key is the line of one key: of slots, or of a rate that callers book or ask for.
type key struct {
	slots   weir.Request
	entries []*entry // by arrival
	rates   map[*process]*waiting
}

// entry is what the server knows of the waiting callers of one process.
type entry struct {
	process                *process
	token                  uint64
	arrival, heard, called time.Time // called is zero until it is called
	told, want, cost       int64
	hears                  bool
	grace                  time.Duration
	keep                   uint64 // the lease of a caller that stays; 0 for callers that stand
}

// waiting is the oldest caller of a process that a rate refused.
type waiting struct {
	arrival, till time.Time
	lease         uint64 // 0 if it books
}

// NewServer returns a server without states.
func NewServer(options weir.MemoryOptions) *Server {
	return Over(weir.NewMemory(options))
}

// Over returns a server with the states of a memory engine.
func Over(memory *weir.Memory) *Server {
	return &Server{Memory: memory, keys: map[string]*key{}, leases: map[uint64]bool{}}
}

// Counts returns the number of calls of the server so far, and of grants.
func (s *Server) Counts() (calls, grants int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.grants
}

func (s *Server) key(r weir.Request) *key {
	name := r.Rule.Name() + "\x00" + r.Key
	if s.keys[name] == nil {
		r.Cost = 0
		if held := r.Rule.Held(); held != nil {
			r.Rule = held
		}
		s.keys[name] = &key{slots: r, rates: map[*process]*waiting{}}
	}
	return s.keys[name]
}

func isSlots(r *weir.Request) bool {
	return r.Rule.Held() != nil
}

// free returns the units of a key that nobody holds.
func (s *Server) free(k *key) int64 {
	d, _ := s.Memory.Peek(context.Background(), k.slots)
	return d.Remaining
}

func (e *entry) live(now time.Time) bool { return now.Sub(e.heard) <= life }
func (e *entry) passed(now time.Time) bool {
	return !e.called.IsZero() && now.Sub(e.called) > e.grace
}
func (e *entry) inWay(now time.Time) bool { return e.live(now) && !e.passed(now) }

// keeps is the units that an entry keeps from younger callers. A process without signals keeps those of its first caller
// alone.
func (e *entry) keeps() int64 {
	if !e.hears {
		return e.cost
	}
	return max(e.want, e.cost)
}

// room is what is left for a caller of a process that came at an instant. A caller that stays keeps its units only while it
// is the first in line.
func (s *Server) room(k *key, p *process, lease uint64, arrival, now time.Time) int64 {
	f, first := s.free(k), true
	for _, e := range k.entries {
		if !e.arrival.Before(arrival.Add(-theta)) {
			break
		}
		if !e.inWay(now) {
			continue
		}
		if e.keep == 0 && e.process != p || e.keep != 0 && first && e.keep != lease {
			f -= e.keeps()
		}
		first = false
	}
	return f
}

// ask decides the callers of a process and renews its entries.
func (s *Server) ask(p *process, ask *enginekit.LineAsk, hears bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	now := time.Now()
	own, stay := map[*key]*enginekit.LineKey{}, map[*key]*enginekit.LineKey{} // callers of this ask that stand, and that stay
	rest := map[*key]*enginekit.LineKey{}
	for i := range ask.Keys {
		rest[s.key(ask.Keys[i].Slots)] = &ask.Keys[i]
	}
	for i := range ask.Callers {
		s.decide(p, &ask.Callers[i], now, own, rest, stay)
	}
	for i := range ask.Keys {
		k, r := s.key(ask.Keys[i].Slots), &ask.Keys[i]
		s.renew(p, k, r, own[k], stay[k], hears, now)
		s.wake(k, p, now)
		s.tell(p, k, r, now)
	}
}

// decide decides one caller.
func (s *Server) decide(p *process, c *enginekit.LineCaller, now time.Time, own, rest, stay map[*key]*enginekit.LineKey) {
	lease := leaseOf(c)
	if s.leases[lease] {
		c.Decision.Allowed = true
		return
	}
	if s.rateRefuses(p, c, now) {
		return
	}
	for i := range c.Requests {
		r := &c.Requests[i]
		if !isSlots(r) {
			continue
		}
		k := s.key(*r)
		f := s.room(k, p, lease, c.Since, now)
		if o := own[k]; o != nil {
			f -= o.Want
		}
		if o := rest[k]; o != nil && o.Want > 0 && o.Since.Before(c.Since) {
			f -= o.Want
		}
		if f < r.Cost {
			c.Stands = append(c.Stands, i)
		}
	}
	if len(c.Stands) == 0 {
		a, err := s.Memory.Do(context.Background(), weir.Call{Op: weir.OpTake, Requests: c.Requests, Lease: c.Lease})
		if c.Decision, c.Taken, c.Err = a.Decision, a.Taken, err; c.Decision.Allowed {
			s.leases[lease] = lease != asker
			s.grants++
			for i := range c.Requests {
				s.key(c.Requests[i]).served(p, lease, c.Since)
			}
			c.Next = s.next(p, lease, c.Requests, now)
			return
		}
		for i := range c.Requests { // another caller of the memory engine was faster
			if r := &c.Requests[i]; isSlots(r) && r.Rule.Name() == c.Decision.Rule && r.Key == c.Decision.Key {
				c.Stands = append(c.Stands, i)
			}
		}
		if len(c.Stands) == 0 {
			return
		}
	}
	c.Decision, _ = s.Memory.Peek(context.Background(), c.Requests...)
	c.Decision.Allowed, c.Decision.Cause = false, cmp.Or(c.Decision.Cause, weir.ByCount)
	c.Decision.RetryAfter = max(c.Decision.RetryAfter, time.Millisecond)
	for _, i := range c.Stands {
		k := s.key(c.Requests[i])
		if own[k] == nil {
			own[k] = &enginekit.LineKey{Slots: c.Requests[i], Since: c.Since}
		}
		own[k].Want += c.Requests[i].Cost
	}
	for i := range c.Requests {
		k, r := s.key(c.Requests[i]), &c.Requests[i]
		switch {
		case hasRate(r) && c.Stays:
			k.keep(p, waiting{c.Since, now.Add(life), lease}, now)
		case hasRate(r):
			k.served(p, lease, c.Since)
		}
		if isSlots(r) && c.Stays && !slices.Contains(c.Stands, i) && stay[k] == nil {
			stay[k] = &enginekit.LineKey{Since: c.Since, Token: lease, Want: c.Requests[i].Cost}
		}
	}
}

// renew makes the entry of a process that of its callers that stand: those of the ask and the rest.
func (s *Server) renew(p *process, k *key, rest, own, stay *enginekit.LineKey, hears bool, now time.Time) {
	old := k.entry(p)
	rest.Passed = old != nil && old.live(now) && old.passed(now)
	k.remove(p)
	e := entry{process: p, token: rest.Token, heard: now, want: rest.Want, cost: rest.Slots.Cost, arrival: rest.Since, hears: hears, grace: p.grace}
	if own != nil {
		if rest.Want == 0 || own.Since.Before(rest.Since) {
			e.arrival, e.cost = own.Since, own.Slots.Cost
		}
		e.want += own.Want
	}
	if keep := rest.Keep; keep.Units > 0 && (stay == nil || keep.Since.Before(stay.Since)) {
		stay = &enginekit.LineKey{Token: keep.Lease, Since: keep.Since, Want: keep.Units}
	}
	if stay != nil {
		k.entries = append(k.entries, &entry{process: p, arrival: stay.Since, heard: now, want: stay.Want, cost: stay.Want, hears: hears, grace: p.grace, keep: stay.Token})
	}
	if e.want > 0 {
		k.entries = append(k.entries, &e)
	}
	if len(k.entries) > 0 {
		slices.SortStableFunc(k.entries, func(a, b *entry) int {
			return cmp.Or(a.arrival.Compare(b.arrival), cmp.Compare(a.process.number, b.process.number))
		})
	}
}

func (k *key) entry(p *process) *entry {
	if i := slices.IndexFunc(k.entries, func(e *entry) bool { return e.process == p && e.keep == 0 }); i >= 0 {
		return k.entries[i]
	}
	return nil
}

func (k *key) remove(p *process) {
	k.entries = slices.DeleteFunc(k.entries, func(e *entry) bool { return e.process == p })
}

// tell answers what is free for a process, and when to look again.
func (s *Server) tell(p *process, k *key, news *enginekit.LineKey, now time.Time) {
	e := k.entry(p)
	f, want, cost := s.free(k), int64(weir.MaxCount), int64(1)
	if e != nil {
		want, cost = max(e.want, e.cost), e.cost
	}
	all, first := f, true
	for _, o := range k.entries {
		if !o.inWay(now) {
			continue
		}
		was := first
		if first = false; o.keep != 0 {
			if was && (e == nil || o.arrival.Before(e.arrival)) {
				f -= o.keeps()
			}
			continue
		}
		if o.process == p {
			continue
		}
		if e != nil && !o.arrival.Before(e.arrival) {
			news.MinAge = max(now.Sub(o.arrival)-theta, time.Microsecond)
			break
		}
		if f > 0 {
			at := o.heard
			if !o.called.IsZero() {
				at = o.called
			}
			if look := max(at.Add(o.grace).Sub(now), 0) + time.Millisecond; news.Look == 0 || look < news.Look {
				news.Look = look
			}
		}
		f -= o.keeps()
	}
	switch {
	case f >= cost:
		news.Look, news.Units = 0, min(f, want)
		if e != nil {
			e.called, e.told = now, news.Units
		}
	default:
		if news.MinAge = 0; all < cost {
			news.Look = 0
		}
	}
}

// wake calls the processes whose callers may go, the oldest first.
func (s *Server) wake(k *key, by *process, now time.Time) {
	k.entries = slices.DeleteFunc(k.entries, func(e *entry) bool { return !e.live(now) })
	f, first := s.free(k), true
	for i, e := range k.entries {
		if f <= 0 {
			return
		}
		if e.passed(now) {
			continue
		}
		was := first
		if first = false; e.keep != 0 {
			if was {
				f -= e.keeps()
			}
			continue
		}
		if f < e.cost {
			if e.process != by && e.called.IsZero() && now.Sub(e.heard) > e.grace {
				s.call(k, i, 0, now)
			}
			return
		}
		if u := min(f, max(e.want, e.cost)); e.process != by && (e.called.IsZero() || e.told < u) {
			s.call(k, i, u, now)
		}
		f -= e.keeps()
	}
}

func (s *Server) call(k *key, i int, units int64, now time.Time) {
	e := k.entries[i]
	if e.called.IsZero() {
		e.called = now
	}
	if e.told = units; !e.hears {
		return
	}
	signal := enginekit.LineSignal{Token: e.token, Units: units}
	for _, o := range k.entries[i+1:] {
		if o.keep == 0 && o.inWay(now) {
			signal.MinAge = max(now.Sub(o.arrival)-theta, time.Microsecond)
			break
		}
	}
	e.process.publish(signal)
}

// released wakes the lines of slots that came back.
func (s *Server) released(requests []weir.Request, lease uint64) {
	now := time.Now()
	for i := range requests {
		if r := &requests[i]; isSlots(r) && r.Cost > 0 {
			delete(s.leases, lease)
			s.wake(s.key(*r), nil, now)
		}
	}
}

func (s *Server) reserveAhead(longest time.Duration, q weir.Request) (weir.Decision, func(context.Context, int64) error, error) {
	r, err := weir.ReserveAhead(context.Background(), s.Memory, longest, q)
	if err != nil {
		return weir.Decision{}, nil, err
	}
	return r.Decision, func(ctx context.Context, n int64) error { return r.Settle(ctx, q.Cost-n) }, nil
}

// The leases of callers without slots.
const (
	booker = 0
	asker  = 1
)

func leaseOf(c *enginekit.LineCaller) uint64 {
	for i := range c.Requests {
		if isSlots(&c.Requests[i]) {
			return c.Lease
		}
	}
	return asker
}
