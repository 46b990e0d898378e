// Package top finds the keys of each rule with the most calls, in bounded memory, whatever the engine.
//
// [Keys.Count] counts the requests of a decision. Most decisions cost it an addition: one of up to 64 is a sample, for all
// since the one before, and goes into a [sketch] of its rule. [Keys.ServeHTTP] answers GET /v1/top.
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
	sampleGap   = 32 // calls from one sample to the next, on average
)

// Keys are the busiest and the most refused keys of each rule. They are safe for concurrent use.
type Keys struct {
	seed  maphash.Seed
	rules sync.Map // *ruleKeys, by name
	known atomic.Int64
}

// ruleKeys are the keys of a rule, by By.
type ruleKeys [2]struct {
	calls, next atomic.Uint64 // next is the call that is the next sample

	mu      sync.Mutex
	counted uint64    // calls at the last sample
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

// Count counts the requests of a decision, and reports whether it was a refusal.
func (k *Keys) Count(o layer.Observation) (refused bool) {
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

// Taken counts the requests of a call that was admitted.
func (k *Keys) Taken(requests []weir.Request) {
	for i := range requests {
		k.count(Taken, requests[i].Rule.Name(), requests[i].Key)
	}
}

// Refused counts a call that a rule has refused.
func (k *Keys) Refused(rule, key string) { k.count(Refused, rule, key) }

func (k *Keys) count(by By, rule, key string) {
	r := k.ruleKeys(rule)
	if r == nil {
		return
	}
	of := &r[by]
	if n := of.calls.Add(1); n < of.next.Load() || !of.mu.TryLock() { // if the list is in use, the next call is the sample
		return
	}
	defer of.mu.Unlock()
	n := of.calls.Load()
	if n < of.next.Load() {
		return // another goroutine was faster
	}
	now := time.Now()
	if of.halved.IsZero() {
		of.halved = now
	}
	if times := now.Sub(of.halved) / halvingTime; times > 0 {
		of.halved = of.halved.Add(times * halvingTime)
		of.sketch.halve(int(min(times, 64)))
	}
	// While this goroutine was held up, others may have made many calls without a sample. They are not those of this key.
	of.sketch.add(maphash.String(k.seed, key), key, min(n-of.counted, 2*sampleGap))
	of.counted = n
	of.next.Store(n + 1 + rand.Uint64N(min(2*sampleGap-1, 1+n/sampleGap))) // the first calls are all samples
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
func (k *Keys) Top(rule string, by By, n int) []Count { return largest(k.list(rule, by), n) }

// Busiest returns the n keys with the most calls under any rule, admitted or refused, the largest count first.
func (k *Keys) Busiest(n int) []Count {
	all := k.list("", Taken)
	at := make(map[[2]string]int, len(all))
	for i, c := range all {
		at[[2]string{c.Rule, c.Key}] = i
	}
	for _, c := range k.list("", Refused) {
		if i, taken := at[[2]string{c.Rule, c.Key}]; taken {
			all[i].Count += c.Count
			all[i].Overcount += c.Overcount
		} else {
			all = append(all, c)
		}
	}
	return largest(all, n)
}

// list returns the keys of a rule, or of all that decide for "".
func (k *Keys) list(rule string, by By) []Count {
	all := []Count{}
	add := func(name, r any) bool {
		of := &r.(*ruleKeys)[by]
		of.mu.Lock()
		defer of.mu.Unlock()
		if time.Since(of.halved) >= halvingTime { // nothing has come since
			of.sketch.halve(int(min(time.Since(of.halved)/halvingTime, 64)))
			of.halved = time.Now()
		}
		all = of.sketch.list(all, name.(string))
		return true
	}
	if rule == "" {
		k.rules.Range(func(name, r any) bool {
			return strings.Contains(name.(string), "~") || add(name, r) // shadows and candidates refuse nobody
		})
	} else if r, known := k.rules.Load(rule); known {
		add(rule, r)
	}
	return all
}

func largest(all []Count, n int) []Count {
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}
