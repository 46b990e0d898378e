package override

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/enginekit"
)

// Table holds the entries in force. It is safe for concurrent use.
type Table struct {
	store   store
	current atomic.Pointer[index] // nil without entries
	mu      sync.Mutex            // one change at a time
	log     *slog.Logger
	changed atomic.Pointer[func()] // see OnChange
	unused  *weir.Memory           // which has no state of any key

	secret atomic.Pointer[[]byte] // nil until it is asked for, and after a change of the store
	former []byte                 // the last one; mu guards it
}

// index finds the entry of a request. It does not change.
type index struct {
	of      map[target]*inForce
	lengths []int // of prefixes, the longest first
	modes   []Entry
}

// inForce is an entry with its limit, as rules of the names that have asked.
type inForce struct {
	Entry
	until  int64
	limits []weir.Limit
	held   bool
	bans   bool
	rules  sync.Map // of *weir.Rule, by name
}

// newIndex returns the index of entries whose time has not come, or nil if there are none. unread is called with those
// that cannot be in force, such as entries of another version of weir, or of a file that was edited.
func newIndex(entries []Entry, now time.Time, unread func(Entry, error)) (*index, error) {
	x := &index{of: make(map[target]*inForce, len(entries))}
	for _, e := range entries {
		if !e.Until.After(now) {
			continue
		}
		if e.Mode != Auto {
			x.modes = append(x.modes, e)
			continue
		}
		rule, err := e.asRule("rule")
		if err != nil {
			unread(e, err)
			continue
		}
		e.Limit = textOf(rule)
		x.of[e.target()] = &inForce{Entry: e, until: e.Until.UnixNano(), limits: rule.Limits(), held: weir.Kit.Held(rule) != nil,
			bans: slices.ContainsFunc(rule.Limits(), func(l weir.Limit) bool { return weir.Describe(l).Bans })}
		if e.Prefix && !slices.Contains(x.lengths, len(e.Key)) {
			x.lengths = append(x.lengths, len(e.Key))
		}
	}
	switch {
	case len(x.of)+len(x.modes) == 0:
		return nil, nil
	case len(x.of)+len(x.modes) > MaxEntries:
		return nil, errFull
	case len(x.lengths) > maxLengths:
		return nil, fmt.Errorf("override: prefixes have more than %d different lengths", maxLengths)
	}
	slices.SortFunc(x.lengths, func(a, b int) int { return cmp.Compare(b, a) })
	return x, nil
}

// find returns the entry of a request, or nil. That of the key goes before those of prefixes, that of a longer prefix before
// shorter ones, and that of the rule before that of all rules.
func (x *index) find(asked weir.Request, now int64) *inForce {
	if asked.Rule == nil { // the engine will say so
		return nil
	}
	rule, key, held := asked.Rule.Name(), asked.Key, weir.Kit.Held(asked.Rule) != nil
	if strings.Contains(rule, "~") || rules.InPlace(asked.Rule) != nil { // candidates, probes, and stand-ins for shadows
		return nil
	}
	if e := x.at(target{rule: rule, key: key}, held, now); e != nil {
		return e
	}
	for _, n := range x.lengths {
		if n > len(key) {
			continue
		}
		if e := x.at(target{rule: rule, key: key[:n], prefix: true}, held, now); e != nil {
			return e
		}
	}
	return nil
}

func (x *index) at(p target, held bool, now int64) *inForce {
	for _, p.rule = range [2]string{p.rule, ""} {
		e := x.of[p]
		// A slot is given back to the rule, so an entry without slots must not admit to one with slots, or the reverse.
		if e != nil && now < e.until && (e.Limit == Block || e.held == held) {
			return e
		}
	}
	return nil
}

// madeFor names a rule that stands in for others.
type madeFor struct {
	name  string
	after bool // it charges after the work
}

// rule returns the limit as a rule that stands in for another one, or nil.
func (e *inForce) rule(asked *weir.Rule) *weir.Rule {
	as := madeFor{asked.Name(), asked.ChargesAfter()}
	if known, ok := e.rules.Load(as); ok {
		return known.(*weir.Rule)
	}
	made, err := weir.NewRule(as.name, e.limits...)
	if err == nil && as.after {
		made, err = made.ChargeAfter()
	}
	if err != nil {
		return nil
	}
	e.rules.Store(as, made)
	return made
}

// Requests returns the requests by the limits in force for their keys: the same slice if they have no entries.
func (t *Table) Requests(requests []weir.Request) []weir.Request {
	if x := t.current.Load(); x != nil && len(x.of) > 0 {
		return x.requests(requests, time.Now().UnixNano())
	}
	return requests
}

func (x *index) requests(requests []weir.Request, now int64) []weir.Request {
	cloned := false
	for i := range requests {
		q, changed := x.request(&requests[i], now)
		if !changed {
			continue
		}
		if !cloned {
			requests, cloned = slices.Clone(requests), true
		}
		requests[i] = q
	}
	return requests
}

// request returns a request, and those that may be made in its place, by the limits in force for their keys. Nothing is made in place of
// an entry with a ban: a banned key gets no pool.
func (x *index) request(asked *weir.Request, now int64) (q weir.Request, changed bool) {
	q = *asked
	if e := x.find(q, now); e != nil {
		if rule := e.rule(q.Rule); rule != nil {
			q.Rule, changed = rule, true
			if e.bans {
				q.Otherwise = nil
			}
		}
	}
	if q.Otherwise == nil {
		return q, changed
	}
	pool, other := x.request(q.Otherwise, now)
	if other {
		q.Otherwise = &pool
	}
	return q, changed || other
}

// Entries returns the entries in force, in order.
func (t *Table) Entries() []Entry {
	entries := []Entry{}
	if x := t.current.Load(); x != nil {
		for _, e := range x.of {
			if time.Now().Before(e.Until) {
				entries = append(entries, e.Entry)
			}
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Limit, b.Limit))
	})
	return entries
}

// Engine is an engine whose keys may have other limits. weir.Find finds it below functions around it.
type Engine struct {
	weir.Engine
	*Table
	below weir.Engine
}

// Unwrap returns the engine below, for weir.Find.
func (e *Engine) Unwrap() weir.Engine { return e.below }

// Around returns the engine by the limits of the table.
func (t *Table) Around(below weir.Engine) *Engine {
	return &Engine{weir.Wrap(below, t.around), t, below}
}

func (t *Table) around(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	x := t.current.Load()
	if x == nil || len(x.of) == 0 {
		return next(ctx, call)
	}
	now, changed := time.Now().UnixNano(), enginekit.Copied(call)
	for i := range enginekit.Decisions(&changed) {
		c, _, _, _ := enginekit.DecisionAt(&changed, &weir.Answer{}, nil, i)
		x.change(c, now)
	}
	a, err := next(ctx, changed)
	for i := range enginekit.Decisions(&call) {
		c, d, r, _ := enginekit.DecisionAt(&call, &a, err, i)
		t.date(d, x, c, now)
		if r != nil {
			t.date(&r.Decision, x, c, now)
		}
	}
	return a, err
}

// change lets a call that asks for units ask by the limits in force.
func (x *index) change(call *weir.Call, now int64) {
	switch call.Op {
	case weir.OpTake, weir.OpTakeUpTo, weir.OpReserve, weir.OpReserveAhead, weir.OpPeek:
		call.Requests = x.requests(call.Requests, now)
	}
}

// date says when a call is free that only blocks refuse: at the end of the last of them. A call that would not fit without
// them keeps its answer that it never does.
func (t *Table) date(d *weir.Decision, x *index, call *weir.Call, now int64) {
	if d.Allowed || d.RetryAfter != weir.Never || d.Rule == "" {
		return
	}
	changed := *call
	x.change(&changed, now)
	asked, decided := call.Requests, changed.Requests
	until, others := int64(0), make([]weir.Request, 0, len(asked))
	for i, q := range asked {
		e, by := x.find(q, now), decided[i]
		if e == nil || e.Limit != Block || textOf(by.Rule) != Block {
			others = append(others, by)
			continue
		}
		until = max(until, e.until)
		if by.Rule != q.Rule { // otherwise the caller has got the request from Requests
			others = append(others, q)
		}
	}
	if until == 0 || len(others) > 0 && !t.fit(others) {
		return
	}
	d.RetryAfter = max(1, time.Duration(until-time.Now().UnixNano())) // 1 if the block has just ended
	d.ResetAfter, d.LimitReset = d.RetryAfter, d.RetryAfter
}

// fit reports whether requests are admitted if none of their keys has been used.
func (t *Table) fit(requests []weir.Request) bool {
	for i := range requests {
		requests[i].Otherwise = nil
	}
	d, err := t.unused.Peek(context.Background(), requests...)
	return err == nil && d.Allowed
}
