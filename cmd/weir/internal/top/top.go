// Package top finds the keys of each rule with the most calls, in bounded memory, whatever the engine.
//
// [Keys.Sample] looks at the requests of a decision. It counts none that is no sample: of a busy rule one request in 32, drawn at
// random, stands for 32 in a [sketch] of its rule. [Keys.ServeHTTP] answers GET /v1/top.
package top

import (
	"cmp"
	"hash/maphash"
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

// Keys are the busiest and the most refused keys of each rule. They are safe for concurrent use.
type Keys struct {
	seed  maphash.Seed
	rules sync.Map // *ruleKeys, by name
	known atomic.Int64
}

// ruleKeys are the keys of a rule, by By.
type ruleKeys [2]struct {
	gap atomic.Uint64 // one call in so many is a sample; 0 is 1

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
	Cut       bool   `json:"cut,omitempty"` // Key is the beginning of a longer one
}

// New returns no keys.
func New() *Keys { return &Keys{seed: maphash.MakeSeed()} }

// Sample draws samples from the requests of a decision, and reports whether it was a refusal.
func (k *Keys) Sample(o layer.Observation) (refused bool) {
	switch {
	case o.Err != nil || o.Op == weir.OpPeek:
	case o.Decision.Allowed:
		k.Taken(o.Requests)
	default:
		k.Refused(o.Rule, o.Key)
		return true
	}
	return false
}

// Taken draws samples from the requests of a call that was admitted.
func (k *Keys) Taken(requests []weir.Request) {
	for i := range requests {
		k.sample(Taken, requests[i].Rule.Name(), requests[i].Key)
	}
}

// Refused makes a call that a rule has refused a sample, perhaps.
func (k *Keys) Refused(rule, key string) { k.sample(Refused, rule, key) }

func (k *Keys) sample(by By, rule, key string) {
	r := k.ruleKeys(rule)
	if r == nil {
		return
	}
	of := &r[by]
	gap := max(of.gap.Load(), 1)
	if gap > 1 && rand.Uint64N(gap) > 0 {
		return
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	now := time.Now()
	if of.halved.IsZero() {
		of.halved = now
	}
	if times := now.Sub(of.halved) / halvingTime; times > 0 {
		of.halved = of.halved.Add(times * halvingTime)
		of.sketch.halve(int(min(times, 64)))
	}
	of.sketch.add(maphash.String(k.seed, key), key, gap)
	of.sampled += gap
	of.gap.Store(min(mostGap, 1+of.sampled/gapGrowth))
}

// ruleKeys returns the keys of a rule, or nil if there are too many rules.
func (k *Keys) ruleKeys(rule string) *ruleKeys {
	if r, known := k.rules.Load(rule); known {
		return r.(*ruleKeys)
	}
	if k.known.Load() >= mostRules {
		return nil
	}
	r, known := k.rules.LoadOrStore(rule, &ruleKeys{})
	if !known {
		k.known.Add(1)
	}
	return r.(*ruleKeys)
}

// Forget drops the keys of a rule that is gone.
func (k *Keys) Forget(rule string) {
	if _, known := k.rules.LoadAndDelete(rule); known {
		k.known.Add(-1)
	}
}

// Top returns the n keys with the most calls under a rule, or under any for "", the largest count first.
func (k *Keys) Top(rule string, by By, n int) []Count {
	best, list := []Count{}, []Count{}
	k.each(rule, func(name string, r *ruleKeys) {
		list = r.list(list[:0], name, by)
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
		best = largest(best, list, n)
	})
	return best
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

// each calls use with a rule, or with all that decide for "".
func (k *Keys) each(rule string, use func(name string, r *ruleKeys)) {
	if rule != "" {
		if r, known := k.rules.Load(rule); known {
			use(rule, r.(*ruleKeys))
		}
		return
	}
	k.rules.Range(func(name, r any) bool {
		if !strings.Contains(name.(string), "~") { // shadows and candidates refuse nobody
			use(name.(string), r.(*ruleKeys))
		}
		return true
	})
}

// list appends the keys of a rule to a list.
func (r *ruleKeys) list(to []Count, rule string, by By) []Count {
	of := &r[by]
	of.mu.Lock()
	defer of.mu.Unlock()
	if time.Since(of.halved) >= halvingTime { // nothing has come since
		of.sketch.halve(int(min(time.Since(of.halved)/halvingTime, 64)))
		of.halved = time.Now()
	}
	return of.sketch.list(to, rule)
}

// largest returns the n largest counts of two lists, of which the first is what it returned before. Viewers of the live page look
// each second at thousands of keys, of which few are large, so it does not sort them.
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
