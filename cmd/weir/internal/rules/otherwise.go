package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// A rule may name another one in otherwise: a pool, which has match: otherwise. Where the rule refuses a request, the pool is asked in its
// place, and so on along the chain of pools. layer.Otherwise makes those calls. Neither attributes nor callers reach a pool by another way.
//
// A pool reads its key, plan and cost from the attributes of the request. If an attribute of its key is missing, its field missing says
// whether such requests share a budget, leave the pool out, or end the chain, so that the refusal stands. Without a cost of its own, it
// costs what the rule before it in the chain does.

// chainOf returns the requests of the pools behind a rule that asks by a limit, or nil. A pool without a cost of its own pays cost. named is
// nil for a request by attributes. The values stay on the stack of Decide as long as no struct holds them.
func (r *Rule) chainOf(limit *weir.Rule, values []value, cost, factor int64, named *namedCall) *weir.Request {
	if r.blocks[limit] {
		return nil
	}
	var space [maxLinks]weir.Request
	asks := space[:0]
	for _, p := range r.chain {
		by, key, complete := p.asked(values, named)
		if !complete && p.missing == MissingSkip {
			continue
		}
		valid := true
		if p.ownCost && named == nil {
			cost, valid = p.costOf(values, factor)
		}
		if !valid || !complete && p.missing == MissingRefuse {
			break
		}
		if asks = append(asks, by.For(key, cost)); p.blocks[by] {
			break
		}
	}
	return linked(asks)
}

// linked returns the first of some requests; each is asked in place of the one before it. It does not keep asks.
func linked(asks []weir.Request) *weir.Request {
	if len(asks) == 0 {
		return nil
	}
	chain := slices.Clone(asks)
	for i := range len(chain) - 1 {
		chain[i].Otherwise = &chain[i+1]
	}
	return &chain[0]
}

// namedCall is a request that names a rule and its key.
type namedCall struct {
	rule      *Rule
	key, plan string
}

// asked returns the limit and the key of a request under a pool, and whether no attribute of the key is missing. If
// named is not nil, values are those in its key.
func (r *Rule) asked(values []value, named *namedCall) (limit *weir.Rule, key string, complete bool) {
	if named == nil {
		key, complete = r.keyOf(values)
		return r.limitOf(key, values), r.stored(key), complete
	}
	if len(r.key) > 0 && named.rule.keyedLike(r) {
		key, complete = named.key, true
	} else {
		key, complete = r.keyOf(values)
		key = r.stored(key)
	}
	return cmp.Or(r.ownLimit(key), r.plans[named.plan], r.Limit), key, complete
}

// keyedLike reports whether two rules make the same key of a request.
func (r *Rule) keyedLike(other *Rule) bool {
	return slices.Equal(r.key, other.key) && r.hashed == other.hashed
}

// Otherwise returns the requests of the pools that are asked in place of a rule where that refuses a request that names
// the rule and a key, with the plan of its caller or "". It returns nil where there are none. All pay the caller's
// cost. Pools know the attributes in the key of the rule, unless it is hashed; all others are missing.
func (c *Config) Otherwise(rule, key, plan string, cost int64) *weir.Request {
	r := c.names[rule]
	if r == nil || r.chain == nil || r.Shadow {
		return nil
	}
	values := make([]value, len(c.mentions))
	for slot, text := range r.told(key) {
		values[slot] = value{text: text, key: text, present: true}
	}
	return r.chainOf(c.LimitOfPlan(rule, key, plan), values, cost, 1, &namedCall{r, key, plan})
}

// told returns the values of attributes that a key of the rule tells, by slot.
func (r *Rule) told(key string) map[int]string {
	if r.hashed || len(r.key) == 0 || strings.HasPrefix(key, hashMark) {
		return nil
	}
	values, _, _ := r.KeyValues(key)
	return values
}

// Pools returns the rules that are only asked in place of others, as engines have them.
func (c *Config) Pools() (pools []*weir.Rule) {
	for _, r := range c.Rules {
		if r.Pool {
			pools = append(pools, r.Limit)
		}
	}
	return pools
}

// Chain returns the pools that are asked in place of the rule, in order. The caller does not change it.
func (r *Rule) Chain() []*Rule { return r.chain }

// blocks reports whether limits refuse all.
func blocks(limits *weir.Rule) bool {
	return slices.Contains(limits.Limits(), weir.Limit(weir.DenyAll{}))
}

// blocking returns the limits of the rule that refuse all.
func (r *Rule) blocking() map[*weir.Rule]bool {
	blocking := map[*weir.Rule]bool{}
	for _, limit := range r.limits() {
		if blocks(limit) {
			blocking[limit] = true
		}
	}
	return blocking
}
