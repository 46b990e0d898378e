package front

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weirflow/weir"
)

// EstimateOptions configure an Estimate. Max is required.
type EstimateOptions struct {
	Percent  int   // share of the last calls that cost no more than the estimate, 1 to 99. Default: 95
	Min, Max int64 // no estimate is below Min, or above Max. Default of Min: 1
	MaxKeys  int   // whose costs are known; the least used are forgotten. Default: 10,000
}

// Estimate says how many units to hold for work whose cost is known only afterwards, by the costs of the last calls of a
// key. It is safe for concurrent use.
//
// It knows the last 100 costs of each key, about a kibibyte, in this process alone.
type Estimate struct {
	EstimateOptions
	mu         sync.Mutex
	young, old map[string]*costs // old ones that are used become young
}

const (
	lastCosts   = 100 // costs kept for each key
	leastCosts  = 20  // until then a key has no estimate
	defaultKeys = 10_000
)

// costs are the last costs of a key.
type costs struct {
	last     []int64 // a ring of lastCosts
	next     int     // where the next one goes
	estimate int64
}

// NewEstimate returns an Estimate that has learnt nothing. Its errors are *weir.OptionError values.
func NewEstimate(o EstimateOptions) (*Estimate, error) {
	o.Percent, o.Min, o.MaxKeys = cmp.Or(o.Percent, 95), cmp.Or(o.Min, 1), cmp.Or(o.MaxKeys, defaultKeys)
	switch {
	case o.Percent < 1 || o.Percent > 99:
		return nil, OptionError("front", "percent", "%d is not within 1 and 99", o.Percent)
	case o.Min < 1 || o.Min > o.Max || o.Max > weir.MaxCount:
		return nil, OptionError("front", "max", "%d is not within min, which is %d and at least 1, and %d", o.Max, o.Min, int64(weir.MaxCount))
	case o.MaxKeys < 1:
		return nil, OptionError("front", "maxKeys", "%d is below 1", o.MaxKeys)
	}
	return &Estimate{EstimateOptions: o, young: map[string]*costs{}}, nil
}

// Of returns the units to hold for a call of a key, within Min and Max. Until 20 costs of the key are known, that is the
// caller's own estimate, or Max if that is 0.
func (e *Estimate) Of(key string, own int64) int64 {
	key = BoundedKey(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.find(key)
	switch {
	case c != nil && len(c.last) >= leastCosts:
		own = c.estimate
	case own <= 0:
		own = e.Max
	}
	return min(max(own, e.Min), e.Max)
}

// Learn adds what a call of a key has really cost. A call that cost nothing did no work, and teaches nothing.
func (e *Estimate) Learn(key string, cost int64) {
	if cost <= 0 {
		return
	}
	key = BoundedKey(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.find(key)
	if c == nil {
		c = &costs{}
		e.keep(key, c)
	}
	if len(c.last) < lastCosts {
		c.last = append(c.last, cost)
	} else {
		c.last[c.next] = cost
		c.next = (c.next + 1) % lastCosts
	}
	if n := len(c.last); n >= leastCosts {
		sorted := slices.Sorted(slices.Values(c.last))
		c.estimate = sorted[(n*e.Percent+99)/100-1]
	}
}

// find returns the costs of a key, or nil.
func (e *Estimate) find(key string) *costs {
	if c := e.young[key]; c != nil {
		return c
	}
	c := e.old[key]
	if c != nil {
		delete(e.old, key)
		e.keep(key, c)
	}
	return c
}

// keep keeps the costs of a key among the young. With half of the keys young, the others are forgotten.
func (e *Estimate) keep(key string, c *costs) {
	if len(e.young) >= (e.MaxKeys+1)/2 {
		e.old, e.young = e.young, map[string]*costs{}
	}
	e.young[key] = c
}
