package decide

import (
	"cmp"
	"slices"
	"time"
	"weak"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/front"
)

// InForce are the rules that decide requests, with everything prepared for them. It does not change: Use replaces
// it, and a request that has begun keeps the one that it began with.
type InForce struct {
	Config     *rules.Config // finds rules by attributes; nil without rules in files
	list       []*weir.Rule
	named      map[string]*weir.Rule // that callers can name
	known      map[string]*weir.Rule // those, and the pools
	candidates map[*weir.Rule]*weir.Rule
	estimates  map[string]*front.Estimate // of reservations, by the rule
	dynamic    dynamic
	shadows    bool                             // something stands in for some
	pools      bool                             // some are asked in place of others
	attributes bool                             // find rules
	retired    map[weak.Pointer[weir.Rule]]bool // past rules with names, which may still have waiting callers
}

// Use decides later requests by these rules. They are named ones, and those that a configuration finds by attributes, if
// it is not nil. All differ in name, have a lease on every slot, and were accepted by Engine.Check.
func (d *Desk) Use(named []*weir.Rule, config *rules.Config) {
	f := &InForce{list: named, named: make(map[string]*weir.Rule, len(named)), known: map[string]*weir.Rule{}, Config: config, dynamic: dynamic{newRule: d.NewRule}}
	if config != nil {
		f.candidates, f.attributes = config.Candidates(), config.ByAttributes()
		for _, r := range config.Pools() {
			f.known[r.Name()], f.pools = r, true
		}
	}
	f.shadows = d.options.Shadow
	for _, r := range named {
		f.named[r.Name()], f.known[r.Name()] = r, r
		f.shadows = f.shadows || rules.InPlace(r) != nil
	}
	d.waiting.use(named)
	before := d.force.Load()
	if before != nil {
		f.retire(before)
	}
	f.estimate(before)
	d.force.Store(f)
	d.Changed()
}

// retire notes the rules of the past that callers may still wait by.
func (f *InForce) retire(before *InForce) {
	f.retired = map[weak.Pointer[weir.Rule]]bool{}
	for rule := range before.retired {
		if rule.Value() != nil {
			f.retired[rule] = true
		}
	}
	for _, r := range before.known {
		f.retired[weak.Make(r)] = true
	}
}

// overrider is an engine that gives keys other limits than those of their rules.
type overrider interface {
	Requests(requests []weir.Request) []weir.Request
}

// Overridden returns requests by the overrides in force.
func (d *Desk) Overridden(requests []weir.Request) []weir.Request {
	if d.overrider == nil {
		return requests
	}
	return d.overrider.Requests(requests)
}

// present returns requests by the rules in force. A rule that is gone stays as it was.
func (d *Desk) present(requests []weir.Request) []weir.Request {
	f := d.force.Load()
	if len(f.retired) > 0 && slices.ContainsFunc(requests, func(q weir.Request) bool { return f.isPast(&q) }) {
		requests = slices.Clone(requests)
		for i := range requests {
			requests[i] = f.present(requests[i])
		}
	}
	return requests
}

// isPast reports whether a rule of a request has been replaced.
func (f *InForce) isPast(q *weir.Request) bool {
	return q != nil && (f.successor(q.Rule) != nil || f.isPast(q.Otherwise))
}

// present returns a request by the rules in force. Requests in its place stay, unless its rule no longer names them.
func (f *InForce) present(q weir.Request) weir.Request {
	pool := q.Otherwise
	q.Rule, q.Otherwise = cmp.Or(f.successor(q.Rule), q.Rule), nil
	if pool == nil || rules.InPlace(q.Rule) != nil {
		return q
	}
	var links []weir.Request
	for ; pool != nil; pool = pool.Otherwise {
		if f.standsIn(pool.Rule.Name(), q.Rule.Name()) {
			link := *pool
			link.Rule = cmp.Or(f.successor(link.Rule), link.Rule)
			links = append(links, link)
		}
	}
	for i := range links {
		if links[i].Otherwise = nil; i+1 < len(links) {
			links[i].Otherwise = &links[i+1]
		}
	}
	if len(links) > 0 {
		q.Otherwise = &links[0]
	}
	return q
}

// standsIn reports whether a pool is asked in place of a rule.
func (f *InForce) standsIn(pool, rule string) bool {
	if f.Config == nil {
		return false
	}
	r := f.Config.Rule(rule)
	return r != nil && slices.ContainsFunc(r.Chain(), func(p *rules.Rule) bool { return p.Name == pool })
}

// successor returns the rule that has replaced one of the past, or nil.
func (f *InForce) successor(past *weir.Rule) *weir.Rule {
	if past == nil {
		return nil
	}
	if now := f.known[past.Name()]; now != past && f.retired[weak.Make(past)] {
		return now
	}
	return nil
}

// Changed has waiting callers look at the limits in force, after overrides have changed.
func (d *Desk) Changed() { d.queue.Changed() }

// InForce returns the rules that later requests are decided by. A front keeps them while it serves a request.
func (d *Desk) InForce() *InForce { return d.force.Load() }

// Rules returns the rules that later requests are decided by: those with names, shadows and pools among them, and those of files or nil.
func (d *Desk) Rules() (named []*weir.Rule, config *rules.Config) {
	f := d.force.Load()
	for _, r := range f.list {
		named = append(named, rules.Own(r))
	}
	if f.Config != nil {
		named = append(named, f.Config.Pools()...)
	}
	return named, f.Config
}

// Named returns the rules that callers can name: the stand-in of a shadow, not the shadow.
func (f *InForce) Named() []*weir.Rule { return f.list }

// Rule returns the rule of a name, or nil.
func (f *InForce) Rule(name []byte) *weir.Rule { return f.named[string(name)] }

// Known returns the rule of a name, also a shadow or a pool, or nil.
func (f *InForce) Known(name string) *weir.Rule {
	if r := f.known[name]; r != nil {
		return rules.Own(r)
	}
	return nil
}

// ByAttributes reports whether rules decide requests by their attributes.
func (f *InForce) ByAttributes() bool { return f.attributes }

// Unnamed says why no request can name a rule, in words that follow its name.
func (f *InForce) Unnamed(rule string) string {
	if f.Config == nil || f.Config.Rule(rule) == nil {
		return "no rule has that name"
	}
	return f.Config.Unnamed(rule)
}

// besidesOf returns the requests of the candidates of some rules, and of the shadows that some of them stand in for.
func (f *InForce) besidesOf(requests []weir.Request) (beside []weir.Request) {
	if len(f.candidates) == 0 && !f.shadows {
		return nil
	}
	for _, q := range requests {
		if candidate := f.candidates[q.Rule]; candidate != nil {
			beside = append(beside, candidate.For(q.Key, q.Cost))
		} else if shadow := rules.InPlace(q.Rule); shadow != nil {
			beside = append(beside, shadow.For(q.Key, q.Cost))
		}
	}
	return beside
}

// For returns a request of a rule that a caller has named, with those that are made in its place where it is refused.
func (f *InForce) For(rule *weir.Rule, key string, cost int64) weir.Request {
	q := rule.For(key, cost)
	if f.pools && f.named[rule.Name()] == rule {
		q.Otherwise = f.Config.Otherwise(rule.Name(), key, "", cost)
	}
	return q
}

// OfPlan has requests of named rules ask by the limits of their keys, as rules in files have them: each key's own one, that of a plan, or
// that of the rule.
func (f *InForce) OfPlan(requests []weir.Request, plan string) {
	for i := range requests {
		q := &requests[i]
		if f.Config != nil && rules.InPlace(q.Rule) == nil {
			q.Rule = cmp.Or(f.Config.LimitOfPlan(q.Rule.Name(), q.Key, plan), q.Rule)
			q.Otherwise = f.Config.Otherwise(q.Rule.Name(), q.Key, plan, q.Cost)
		}
	}
}

// shadowsOf returns the requests of the shadows that some rules stand in for.
func shadowsOf(requests []weir.Request) (shadows []weir.Request) {
	for _, q := range requests {
		if q.Rule == nil { // the engine will say so
			continue
		}
		if shadow := rules.InPlace(q.Rule); shadow != nil {
			shadows = append(shadows, shadow.For(q.Key, q.Cost))
		}
	}
	return shadows
}

// own returns requests of the rules themselves, not of their stand-ins for shadows.
func own(requests []weir.Request) []weir.Request {
	if len(shadowsOf(requests)) == 0 {
		return requests
	}
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Rule = rules.Own(requests[i].Rule)
	}
	return requests
}

// Message returns the text of a rule in a file for people whose request it refuses, or "".
func (f *InForce) Message(rule string) string {
	if f.Config == nil || f.Config.Rule(rule) == nil {
		return ""
	}
	return f.Config.Rule(rule).Message
}

// Number returns the number of rules.
func (f *InForce) Number() int {
	if f.Config != nil {
		return len(f.Config.Rules)
	}
	return len(f.named)
}

// facts are the limits of a rule as answers show them.
type facts struct {
	lease      time.Duration // the shortest one of a slot; 0 without slots
	quotas     []quota
	capacities []int64 // of the limits
}

// quota is a quota of a rule, and its place among the limits.
type quota struct {
	at    int
	limit weir.Limit
}

// factsOf makes the facts once for each rule, also for those that requests and overrides bring.
func factsOf(rule *weir.Rule) *facts {
	return enginekit.Keep(rule, func(rule *weir.Rule) *facts {
		f := &facts{}
		for i, limit := range rule.Limits() {
			d := weir.Describe(limit)
			f.capacities = append(f.capacities, d.Capacity)
			if d.Lease > 0 && (f.lease == 0 || d.Lease < f.lease) {
				f.lease = d.Lease
			}
			if d.Calendar != 0 {
				f.quotas = append(f.quotas, quota{i, limit})
			}
		}
		return f
	})
}

// Lease returns the shortest lease of a slot of the requests, or 0 if none of them holds slots.
func Lease(requests []weir.Request) (first time.Duration) {
	for i := range requests {
		if lease := factsOf(requests[i].Rule).lease; lease > 0 && (first == 0 || lease < first) {
			first = lease
		}
	}
	return first
}

// QuotaEnd returns when the window of a quota ends, as a time of its zone, after a decision on requests: of the quota
// that refuses, otherwise of the one whose window ends last. ok is false if the limits that decided have no quota.
func (d *Desk) QuotaEnd(made weir.Decision, requests []weir.Request) (end time.Time, ok bool) {
	if f := d.binding(made, requests); f != nil {
		return quotaEnd(f.quotas, made)
	}
	return end, false
}

// binding returns the facts of the rule that a decision on requests names, or nil.
func (d *Desk) binding(made weir.Decision, requests []weir.Request) *facts {
	for _, q := range d.Overridden(d.present(requests)) {
		if q.Key == made.Key && q.Rule.Name() == made.Rule {
			return factsOf(q.Rule)
		}
	}
	return nil
}

// LimitOf returns the limit that an answer names beside the rule of a decision on requests: after a refusal the one that refuses. An
// engine names the limit with the least remaining, which may be that of another rule.
func (d *Desk) LimitOf(made weir.Decision, requests []weir.Request) int64 {
	if made.Allowed || made.Cause == 0 || made.Limit == weir.MaxCount {
		return made.Limit
	}
	f, refuses := d.binding(made, requests), int(made.RefusedBy)
	if made.Cause == weir.ByBan { // which has no units: the limit beside it
		refuses = int(made.LimitIndex)
	}
	if f == nil || len(requests) == 1 && len(f.capacities) == 1 || refuses >= len(f.capacities) {
		return made.Limit
	}
	return f.capacities[refuses]
}

func quotaEnd(all []quota, made weir.Decision) (end time.Time, ok bool) {
	if len(all) == 0 {
		return end, false
	}
	now := time.Now()
	for _, q := range all {
		if !made.Allowed && q.at == int(made.RefusedBy) && made.RetryAfter != weir.Never {
			return front.ResetAt(q.limit, made.RetryAfter), true
		}
		if _, last, _ := weir.Kit.CalendarWindow(q.limit, now); last.After(end) {
			end = last
		}
	}
	return end, true
}
