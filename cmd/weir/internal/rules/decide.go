package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// Verdict says what becomes of a request.
type Verdict uint8

const (
	Ask    Verdict = iota // an engine decides on the Requests
	Allow                 // it is admitted, and nothing is counted
	Refuse                // it is refused, and nothing is counted
)

// Reason says why a request was admitted or refused without an engine.
type Reason string

const (
	ByDefault   Reason = "default"  // no rule matches
	ByRule      Reason = "rule"     // a rule denies it, or exempts it
	ByMissing   Reason = "missing"  // an attribute of the key is missing
	ByCost      Reason = "cost"     // the cost is no whole number
	ByTooMany   Reason = "too many" // more than MaxMatches rules match
	ByPath      Reason = "path"     // servers may read different paths in it
	maxKeyBytes        = 256        // of a key; a longer one is hashed, and so it would be by other fronts
	MaxMatches         = 16         // rules that decide one request
)

// Outcome is the outcome of a request under the rules. Reuse it to save allocations.
type Outcome struct {
	Verdict  Verdict
	Reason   Reason         // of Allow and Refuse
	Rule     *Rule          // that refused or exempted the request; nil by default
	Requests []weir.Request // of one call, all or nothing
	Rules    []*Rule        // those of the Requests
	// Beside are the requests of shadows and candidates. Each is a call of its own, and changes no answer.
	Beside      []weir.Request
	BesideRules []*Rule // the shadows, and the rules of the candidates
	// Undecided are the rules that take no part, because a Partial lacks an attribute.
	Undecided []Undecided
}

// Decide says what the rules make of a request with the attributes of the source. The caller's cost multiplies those of
// the rules, and is usually 1.
func (c *Config) Decide(from Source, cost int64, o *Outcome) {
	*o = Outcome{Requests: o.Requests[:0], Rules: o.Rules[:0], Beside: o.Beside[:0], BesideRules: o.BesideRules[:0], Undecided: o.Undecided[:0]}
	var space [16]value
	values := c.read(from, space[:0])
	unclear, unknown := oddIn(values)
	if unclear {
		if o.Verdict, o.Reason = Refuse, ByPath; c.admits {
			o.Verdict = Allow
		}
		return
	}
	var found [64]int32
	matched := c.match(values, found[:0])
	if unknown {
		matched = c.leaveOut(matched, values, o)
	}
	var exempt *Rule
	for _, at := range matched {
		switch r := c.Rules[at]; {
		case r.Deny && !r.Shadow:
			o.Verdict, o.Reason, o.Rule = Refuse, ByRule, r
			return
		case r.Unlimited && exempt == nil:
			exempt = r
		}
	}
	if exempt != nil {
		o.Verdict, o.Reason, o.Rule = Allow, ByRule, exempt
		return
	}
	for _, at := range matched {
		if !c.Rules[at].ask(values, cost, o) {
			return
		}
	}
	if len(o.Requests) == 0 {
		o.Verdict, o.Reason = Allow, ByDefault
		if c.Deny && !c.admits && !slices.ContainsFunc(matched, func(at int32) bool { return c.Rules[at].stays }) {
			o.Verdict = Refuse
		}
	}
}

// Matches returns the rules that match a request, in the order of the files.
func (c *Config) Matches(from Source) (rules []*Rule) {
	for _, at := range c.match(c.read(from, nil), nil) {
		rules = append(rules, c.Rules[at])
	}
	return rules
}

// read appends the values of the attributes that rules mention.
func (c *Config) read(from Source, values []value) []value {
	partial, _ := from.(Partial)
	for i := range c.mentions {
		text, ok := c.mentions[i].of(from)
		if !ok {
			values = append(values, value{unknown: partial != nil && c.mentions[i].lacks(partial)})
			continue
		}
		values = append(values, normal(c.mentions[i].family, text))
	}
	return values
}

// oddIn reports whether some values are unclear, and whether some are unknown.
func oddIn(values []value) (unclear, unknown bool) {
	for i := range values {
		unclear, unknown = unclear || values[i].unclear, unknown || values[i].unknown
	}
	return unclear, unknown
}

// limited reports whether the rule takes part in the call of the engine that decides.
func (r *Rule) limited() bool { return !r.Deny && !r.Unlimited && !r.Shadow }

// ask adds the requests of the rule. It returns false if the rule refuses.
func (r *Rule) ask(values []value, factor int64, o *Outcome) bool {
	key, complete := r.keyOf(values)
	cost, valid := r.costOf(values, factor)
	refusal := Reason("")
	switch {
	case !complete && r.missing == MissingSkip:
		return true
	case !complete && r.missing == MissingRefuse:
		refusal = ByMissing
	case !valid:
		refusal = ByCost
	case r.limited() && len(o.Requests) == MaxMatches:
		refusal = ByTooMany
	}
	switch {
	case r.Shadow && refusal == "":
		o.Beside, o.BesideRules = append(o.Beside, r.limitOf(key, values).For(r.stored(key), cost)), append(o.BesideRules, r)
	case r.Shadow:
	case refusal != "":
		o.Verdict, o.Reason, o.Rule = Refuse, refusal, r
		return false
	default:
		limit := r.limitOf(key, values)
		key = r.stored(key)
		q := limit.For(key, cost)
		if r.chain != nil {
			q.Otherwise = r.chainOf(limit, values, cost, factor, nil)
		}
		o.Requests, o.Rules = append(o.Requests, q), append(o.Rules, r)
		if r.Candidate != nil && limit == r.Limit {
			o.Beside, o.BesideRules = append(o.Beside, r.Candidate.For(key, cost)), append(o.BesideRules, r)
		}
	}
	return true
}

// stored returns the key that the engine gets.
func (r *Rule) stored(key string) string {
	if r.hashed {
		return front.HashOf(key)
	}
	return key
}

// limitOf returns the limit of a key: its own one, that of its plan, or that of the rule.
func (r *Rule) limitOf(key string, values []value) *weir.Rule {
	if limit := r.keys[key]; limit != nil {
		return limit
	}
	if r.planBy >= 0 && values[r.planBy].present {
		if limit := r.plans[values[r.planBy].key]; limit != nil {
			return limit
		}
	}
	return r.Limit
}

// LimitOf returns the limit of a key, as engines have it, under a rule that callers can name: that of the key in keys,
// otherwise that of the rule, which plans may replace.
func (c *Config) LimitOf(rule, key string) (limit *weir.Rule, plans bool) {
	r := c.names[rule]
	if r == nil {
		return nil, false
	}
	if own := r.ownLimit(key); own != nil {
		return own, false
	}
	return r.Limit, len(r.plans) > 0
}

// LimitOfPlan returns the limit of a key, as engines have it, under a rule that callers can name: its own one, that of a plan, or that
// of the rule. It is nil without such a rule.
func (c *Config) LimitOfPlan(rule, key, plan string) *weir.Rule {
	limit, plans := c.LimitOf(rule, key)
	if plans {
		return cmp.Or(c.names[rule].plans[plan], limit)
	}
	return limit
}

// HasPlan reports whether a rule has a plan of a name.
func (c *Config) HasPlan(rule, plan string) bool {
	r := c.names[rule]
	return r != nil && r.plans[plan] != nil
}

// costOf returns the cost of a request. It saturates at the largest cost, which fits no limit that can be written.
func (r *Rule) costOf(values []value, factor int64) (cost int64, ok bool) {
	cost = r.cost
	if r.costFrom >= 0 && values[r.costFrom].present {
		read, err := strconv.ParseUint(values[r.costFrom].key, 10, 63)
		if err != nil || read > weir.MaxCount {
			return 0, false
		}
		cost = int64(read)
	}
	if factor > 0 && cost > math.MaxInt64/factor {
		return math.MaxInt64, true
	}
	return cost * factor, factor >= 0
}

// keyOf joins the attributes of the key, so that different values make different keys.
func (r *Rule) keyOf(values []value) (key string, complete bool) {
	complete = true
	if len(r.key) == 1 && values[r.key[0]].present && isPlain(values[r.key[0]].key) {
		return values[r.key[0]].key, true
	}
	var b strings.Builder
	for i, slot := range r.key {
		if i > 0 {
			b.WriteByte('|')
		}
		if !values[slot].present {
			complete = false
			b.WriteString(missingText)
			continue
		}
		escape(&b, values[slot].key)
	}
	if b.Len() > maxKeyBytes {
		sum := sha256.Sum256([]byte(b.String()))
		return hashMark + hex.EncodeToString(sum[:]), complete
	}
	return b.String(), complete
}

// isPlain reports whether a value is its own key.
func isPlain(text string) bool { return len(text) <= maxKeyBytes && !strings.ContainsAny(text, `\|`) }

func escape(b *strings.Builder, text string) {
	for i := range len(text) {
		if text[i] == '|' || text[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
}
