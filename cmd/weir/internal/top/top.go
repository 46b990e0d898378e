// Package top counts the takes of each rule, and finds its keys with the most calls and those that have used most of
// their limit, in bounded memory, for any engine.
//
// [Keys.Sample] looks at the requests of a decision. Each counts as a take of its rule. For a busy rule, one request in 32, drawn at
// random, is a sample: it stands for 32 in a [sketch] of its rule, and its key may be one of the [fullest]. [Keys.Peek] looks at the
// keys of samples beside the calls. [Keys.ServeHTTP] answers GET /v1/top.
package top

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// By says which calls of a key count.
type By int

// The calls that count.
const (
	Taken   By = iota // that were admitted
	Refused           // by the rule
)

const (
	mostRules   = 1000 // further rules have no lists
	halvingTime = 10 * time.Minute
	mostGap     = 32 // calls from one sample to the next, on average
	gapGrowth   = 64 // the gap grows by one every 64 calls, so the first calls are all samples
)

// Keys are the busiest, the most refused and the fullest keys of each rule. They are safe for concurrent use.
type Keys struct {
	seed   maphash.Seed
	credit atomic.Uint64                        // calls that samples stand for, and that no peek has used
	rules  atomic.Pointer[map[string]*ruleKeys] // by name; replaced, so that decisions look it up as fast as can be
	naming sync.Mutex                           // of those that replace it
}

// ruleKeys are the figures of a rule.
type ruleKeys struct {
	beside  atomic.Uint64 // calls that it has admitted and that another rule bound
	by      [2]counted    // by By
	fullest fullest
}

// counted are samples of the calls of a rule.
type counted struct {
	gap atomic.Uint64 // one call in gap is a sample; 0 is 1

	mu      sync.Mutex
	sampled uint64    // the calls that the samples stand for
	halved  time.Time // zero before the first sample
	sketch  sketch
}

// Count is a key with the number of its calls.
type Count struct {
	Rule string `json:"rule"`
	Key  string `json:"key"` // up to keyBytes of it
	// Count is an estimate. It halves every ten minutes, so that it describes recent traffic.
	Count uint64 `json:"count"`
	// Overcount bounds how much of Count may belong to keys that are no longer in the list. Samples add noise to that.
	Overcount uint64 `json:"overcount"`
	Cut       bool   `json:"cut,omitempty"`    // Key is the beginning of a longer one
	Shadow    bool   `json:"shadow,omitempty"` // the rule was a shadow, and Count is of calls that it would have taken or refused
}

// New returns no keys.
func New() *Keys {
	k := &Keys{seed: maphash.MakeSeed()}
	k.rules.Store(&map[string]*ruleKeys{})
	return k
}

// Sample draws samples from the requests of a decision, and reports whether it was a refusal.
func (k *Keys) Sample(o layer.Observation) (refused bool) {
	switch {
	case o.Err != nil || o.Op == weir.OpPeek:
	case o.Decision.Allowed:
		k.taken(o.Requests, &o)
	default:
		k.refused(&o)
		return true
	}
	return false
}

// SampleBeside is Sample for a decision of a shadow or candidate, which admits and refuses nobody. The name of a candidate has a ~.
func (k *Keys) SampleBeside(o layer.Observation) {
	if o.Err != nil || o.Op == weir.OpPeek || len(o.Requests) != 1 {
		return
	}
	name, by := o.Rule, Taken
	isCandidate := strings.Contains(name, "~")
	if !isCandidate {
		name += shadowMark
	}
	if !o.Decision.Allowed {
		by = Refused
	}
	r, gap := k.ruleKeys(name), uint64(0)
	if r != nil {
		gap = r.by[by].sample()
	}
	if gap == 0 {
		return
	}
	s, now, looks := k.draw(r, by, gap, o.Requests[0].Key)
	if k.credit.Add(gap); !looks || isCandidate {
		return
	}
	if of := k.ruleKeys(o.Rule); of != nil { // how full a key is stays when its rule is enforced
		q := &o.Requests[0]
		s.rule, s.key, s.colocation, s.shadow = q.Rule, q.Key, q.Colocation, true
		of.fullest.says(s, &o.Decision, now)
	}
}

// shadowMark ends the names of rules under which their decisions as shadows are sampled.
const shadowMark = "~shadow"

// Taken counts the requests of a call that was admitted, and draws samples from them.
func (k *Keys) Taken(requests []weir.Request) { k.taken(requests, nil) }

// taken gets the decision, unless that is unknown. It says what is left of the rule that binds, whose takes are its
// decisions. The others count a take, and wait for a peek.
func (k *Keys) taken(requests []weir.Request, o *layer.Observation) {
	random := rand.Uint64()
	for i := range requests {
		q := &requests[i]
		name := q.Rule.Name()
		r := k.ruleKeys(name)
		if r == nil {
			continue
		}
		binds := o != nil && o.Key == q.Key && o.Rule == name
		if !binds {
			r.beside.Add(1)
		}
		gap := r.by[Taken].sampleBy(random)
		if gap == 0 {
			continue
		}
		s, now, looks := k.draw(r, Taken, gap, q.Key)
		if i == 0 {
			k.credit.Add(gap)
		}
		if !looks {
			continue
		}
		if s.rule, s.key, s.colocation = q.Rule, q.Key, q.Colocation; binds {
			r.fullest.says(s, &o.Decision, now)
		} else {
			r.fullest.finds(s, now)
		}
	}
}

// Refused counts a call that a rule has refused, and makes it a sample, perhaps.
func (k *Keys) Refused(rule, key string) {
	k.refused(&layer.Observation{Rule: rule, Key: key})
}

func (k *Keys) refused(o *layer.Observation) {
	r := k.ruleKeys(o.Rule)
	if r == nil {
		return
	}
	gap := r.by[Refused].sample()
	if gap == 0 {
		return
	}
	s, now, _ := k.draw(r, Refused, gap, o.Key)
	k.credit.Add(gap)
	for i := range o.Requests {
		if q := &o.Requests[i]; q.Rule.Name() == o.Rule && q.Key == o.Key {
			s.rule, s.key, s.colocation = q.Rule, q.Key, q.Colocation
			r.fullest.says(s, &o.Decision, now)
			return
		}
	}
}

// sample returns the number of calls that this one stands for as a sample, or 0 if it is none.
func (c *counted) sample() (gap uint64) { return c.sampleBy(rand.Uint64()) }

// sampleBy is sample by a random number, one for all rules of a call, because it costs as much as everything else of a
// call that is no sample.
func (c *counted) sampleBy(random uint64) (gap uint64) {
	gap = max(c.gap.Load(), 1)
	if place, _ := bits.Mul64(random, gap); place > 0 { // from 0 to gap-1, all alike
		return 0
	}
	return gap
}

// draw makes a call a sample, and returns the key, so far without its rule. looks reports whether to look how full the key is: of
// a busy rule at every fourth sample, because the caller waits.
func (k *Keys) draw(r *ruleKeys, by By, gap uint64, key string) (s subject, now time.Time, looks bool) {
	of, now, id := &r.by[by], time.Now(), maphash.String(k.seed, key)
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.halved.IsZero() {
		of.halved = now
	}
	if times := now.Sub(of.halved) / halvingTime; times > 0 {
		of.halved = of.halved.Add(times * halvingTime)
		of.sketch.halve(int(min(times, 64)))
	}
	of.sketch.add(id, key, gap)
	of.sampled += gap
	of.gap.Store(min(mostGap, 1+of.sampled/gapGrowth))
	return subject{id: id}, now, gap < mostGap || of.sampled/mostGap%4 == 0
}

// ruleKeys returns the keys of a rule, or nil if there are too many rules.
func (k *Keys) ruleKeys(rule string) *ruleKeys {
	if r := (*k.rules.Load())[rule]; r != nil {
		return r
	}
	return k.add(rule)
}

// add makes room for the keys of a rule.
func (k *Keys) add(rule string) *ruleKeys {
	k.naming.Lock()
	defer k.naming.Unlock()
	rules := *k.rules.Load()
	if r := rules[rule]; r != nil || len(rules) >= mostRules {
		return r
	}
	rules = maps.Clone(rules)
	r := &ruleKeys{}
	rules[rule] = r
	k.rules.Store(&rules)
	return r
}

// Forget drops the keys of a rule that is gone.
func (k *Keys) Forget(rule string) {
	k.naming.Lock()
	defer k.naming.Unlock()
	rules := maps.Clone(*k.rules.Load())
	delete(rules, rule)
	delete(rules, rule+shadowMark)
	k.rules.Store(&rules)
}

// Changed forgets how full the keys of a rule are, whose limits have changed.
func (k *Keys) Changed(rule string) {
	if r := (*k.rules.Load())[rule]; r != nil {
		r.fullest.clear()
	}
}

// Turned notes that a rule refuses nobody from now on, or does.
func (k *Keys) Turned(rule string, shadow bool) {
	if r := (*k.rules.Load())[rule]; r != nil {
		r.fullest.turn(shadow)
	}
}

// Beside returns in how many calls that were admitted each rule counted and another one bound. Its other takes are its decisions.
func (k *Keys) Beside() map[string]uint64 {
	calls := map[string]uint64{}
	k.each("", func(name string, r *ruleKeys) {
		if n := r.beside.Load(); n > 0 {
			calls[name] = n
		}
	})
	return calls
}

// Top returns the n keys with the most calls under a rule, or under any for "", the largest count first.
func (k *Keys) Top(rule string, by By, n int) []Count {
	best, list := []Count{}, []Count{}
	k.each(rule, func(name string, r *ruleKeys) {
		list = marked(r.list(list[:0], name, by), name)
		best = largest(best, list, n)
	})
	return best
}

// Busiest returns the n keys with the most calls under any rule, admitted or refused, the largest count first.
func (k *Keys) Busiest(n int) []Count {
	best, list, at := []Count{}, []Count{}, map[string]int{}
	k.each("", func(name string, r *ruleKeys) {
		list = r.list(list[:0], name, Taken)
		taken := len(list)
		if list = r.list(list, name, Refused); len(list) > taken {
			list = merged(list, taken, at)
		}
		list = marked(list, name)
		best = largest(best, list, n)
	})
	return best
}

// marked marks the counts of a shadow, which are under the name of its rule.
func marked(list []Count, name string) []Count {
	if rule, isShadow := strings.CutSuffix(name, shadowMark); isShadow {
		for i := range list {
			list[i].Rule, list[i].Shadow = rule, true
		}
	}
	return list
}

// merged adds up the counts of keys of a rule that are both among the first ones of a list and among the others. It uses a map.
func merged(list []Count, first int, at map[string]int) []Count {
	clear(at)
	for i := range list[:first] {
		at[list[i].Key] = i
	}
	all := list[:first]
	for _, c := range list[first:] {
		if i, twice := at[c.Key]; twice {
			all[i].Count += c.Count
			all[i].Overcount += c.Overcount
		} else {
			all = append(all, c)
		}
	}
	return all
}

// each calls use with a rule and the shadow that it was, or with all rules and shadows for "".
func (k *Keys) each(rule string, use func(name string, r *ruleKeys)) {
	rules := *k.rules.Load()
	if rule != "" {
		for _, name := range [2]string{rule, rule + shadowMark} {
			if r := rules[name]; r != nil {
				use(name, r)
			}
		}
		return
	}
	for name, r := range rules {
		if !strings.Contains(strings.TrimSuffix(name, shadowMark), "~") { // not a candidate, which is no rule
			use(name, r)
		}
	}
}

// list appends the keys of a rule to a list.
func (r *ruleKeys) list(to []Count, rule string, by By) []Count {
	of := &r.by[by]
	of.mu.Lock()
	defer of.mu.Unlock()
	if time.Since(of.halved) >= halvingTime { // nothing has come since
		of.sketch.halve(int(min(time.Since(of.halved)/halvingTime, 64)))
		of.halved = time.Now()
	}
	return of.sketch.list(to, rule)
}

// largest returns the n largest counts of two lists; the first is an earlier result. Viewers of the live page look each
// second at thousands of keys, and few are large, so it does not sort them.
func largest(best, list []Count, n int) []Count {
	for _, c := range list {
		if len(best) >= n && (n == 0 || c.before(&best[n-1]) >= 0) {
			continue
		}
		i, _ := slices.BinarySearchFunc(best, c, func(a, b Count) int { return a.before(&b) })
		best = slices.Insert(best, i, c)
		best = best[:min(n, len(best))]
	}
	return best
}

// before compares two counts: the larger one comes first, then the name of the rule and the key decide.
func (c *Count) before(other *Count) int {
	return cmp.Or(cmp.Compare(other.Count, c.Count), cmp.Compare(c.Rule, other.Rule), cmp.Compare(c.Key, other.Key))
}
