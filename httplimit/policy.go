package httplimit

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// policies describe one rule for header fields and refusals. The middleware makes them once.
type policies struct {
	rule    *weir.Rule
	each    []policy
	slots   *weir.Rule // its limits whose units are held; nil if there are none
	rates   *weir.Rule // its other limits, whose units are spent; nil if there are none
	draft11 string     // RateLimit-Policy
	older   string     // RateLimit-Policy of drafts 06 and 07
}

// policy describes one limit of a rule to clients.
type policy struct {
	name     string // the rule's, with the ordinal of the limit if it has several
	quoted   string // the name as a string of a structured field
	capacity int64
	window   time.Duration // the longest time in which the capacity comes back; 0 if there is none
	reset    time.Duration // the longest time until nothing is used
	count    int64         // a bucket gets count units back in every period, one by one
	period   time.Duration
	held     bool // units are held, not spent
}

// newPolicies checks that a rule can be used, and describes it.
func (l *limiter) newPolicies(r *weir.Rule) (*policies, error) {
	if err := l.Engine.Check(r); err != nil {
		return nil, err
	}
	s := &policies{rule: r}
	var held, spent []weir.Limit
	limits := r.Limits()
	for i, limit := range limits {
		if err := l.checkAlone(limit); err != nil {
			return nil, err
		}
		p := newPolicy(limit)
		if p.name = r.Name(); len(limits) > 1 {
			p.name += "-" + strconv.Itoa(i+1)
		}
		p.quoted = quoted(p.name)
		if p.held {
			held = append(held, limit)
		} else {
			spent = append(spent, limit)
		}
		if _, none := limit.(weir.Unlimited); !none {
			s.add(p)
		}
	}
	s.slots, s.rates = partOf(r, held, limits), partOf(r, spent, limits)
	return s, nil
}

// partOf returns a rule of some of the limits of r, which shares their states with r.
func partOf(r *weir.Rule, some, all []weir.Limit) *weir.Rule {
	if len(some) == 0 || len(some) == len(all) {
		if len(some) == 0 {
			return nil
		}
		return r
	}
	part, _ := weir.NewRule(r.Name(), some...) // the limits of r are valid
	return part
}

// checkAlone refuses a limit that decides alone beside other rules, and a bucket
// that delays for longer than a request may be held.
func (l *limiter) checkAlone(limit weir.Limit) error {
	log, counts := limit.(weir.SlidingLog)
	bucket, delays := limit.(weir.LeakyBucket)
	if (delays || counts && log.CountDenied) && len(l.Options.Rules) > 1 {
		return optionError("limit", "%s cannot be decided together with other rules: give it a middleware of its own", limit)
	}
	if !delays || bucket.NoDelay >= bucket.Queue {
		return nil
	}
	if longest := scaled(bucket.Queue, bucket.Rate); longest > l.MaxWait {
		return optionError("limit", "%s holds requests for up to %v, above MaxWait of %v: shorten the queue or raise MaxWait", limit, longest, l.MaxWait)
	}
	return nil
}

func newPolicy(limit weir.Limit) policy {
	switch limit := limit.(type) {
	case weir.TokenBucket:
		burst := limit.Burst
		if burst == 0 {
			burst = limit.Rate.Count
		}
		return bucketPolicy(burst, limit.Rate)
	case weir.LeakyBucket:
		return bucketPolicy(limit.Queue+1, limit.Rate)
	case weir.FixedWindow:
		return windowPolicy(limit.Rate)
	case weir.SlidingWindow:
		p := windowPolicy(limit.Rate)
		p.reset *= 2 // the previous window counts, too
		return p
	case weir.SlidingLog:
		return windowPolicy(limit.Rate)
	case weir.RateGate:
		return windowPolicy(limit.Rate)
	case weir.Cycle:
		return windowPolicy(limit.Rate)
	case weir.Concurrency:
		return policy{capacity: limit.Slots, held: true}
	}
	return policy{} // DenyAll, which has a capacity of 0
}

func bucketPolicy(burst int64, rate weir.Rate) policy {
	window := scaled(burst, rate)
	return policy{capacity: burst, window: window, reset: window, count: rate.Count, period: rate.Period}
}

func windowPolicy(rate weir.Rate) policy {
	return policy{capacity: rate.Count, window: rate.Period, reset: rate.Period}
}

// scaled returns the time of n units at a rate, rounded up.
func scaled(n int64, rate weir.Rate) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(rate.Period))
	lo, carry := bits.Add64(lo, uint64(rate.Count)-1, 0)
	if hi += carry; hi >= uint64(rate.Count) {
		return weir.Never
	}
	q, _ := bits.Div64(hi, lo, uint64(rate.Count))
	return time.Duration(min(q, math.MaxInt64))
}

// add adds a policy and its items in the header fields.
func (s *policies) add(p policy) {
	s.each = append(s.each, p)
	item := p.quoted + ";q=" + strconv.FormatInt(min(p.capacity, maxInteger), 10)
	switch {
	case p.held:
		item += `;qu="concurrent-requests"`
	case p.window > 0:
		w := strconv.FormatInt(seconds(p.window), 10)
		item += ";w=" + w
		s.older = joinList(s.older, strconv.FormatInt(p.capacity, 10)+";w="+w)
	}
	s.draft11 = joinList(s.draft11, item)
}

func joinList(list, item string) string {
	if list == "" {
		return item
	}
	return list + ", " + item
}

// maxInteger is the largest integer of a structured field.
const maxInteger = 999_999_999_999_999

// quoted returns a string of a structured field. It percent-encodes bytes that such a string cannot hold.
func quoted(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// tightest returns the policy with this capacity; nil if there is none.
func (s *policies) tightest(capacity int64) *policy {
	for i := range s.each {
		if s.each[i].capacity == capacity {
			return &s.each[i]
		}
	}
	return nil
}

// refusing returns the policy that refuses a cost, because the decision names only the rule. It is the limit with the
// least remaining, if its units can take as long to come back as the refusal says, or otherwise the first limit that
// can.
func (s *policies) refusing(d *weir.Decision, cost int64) *policy {
	if p := s.tightest(d.Limit); p != nil && p.canTake(d.RetryAfter, cost) {
		return p
	}
	var longest *policy
	for i := range s.each {
		p := &s.each[i]
		if p.canTake(d.RetryAfter, cost) {
			return p
		}
		if longest == nil || p.window > longest.window {
			longest = p
		}
	}
	return longest
}

// canTake reports whether a cost may have to wait for d.
func (p *policy) canTake(d time.Duration, cost int64) bool {
	if p.held || d == weir.Never {
		return p.held || cost > p.capacity
	}
	return d <= p.reset
}

// resetAfter returns the time until nothing of the policy is used.
func (p *policy) resetAfter(d *weir.Decision) time.Duration {
	reset := d.ResetAfter
	if p.count > 0 {
		used := max(0, p.capacity-d.Remaining)
		return min(reset, scaled(used, weir.Rate{Count: p.count, Period: p.period}))
	}
	return min(reset, p.reset)
}

// seconds returns t in whole seconds, rounded up.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// plans are the rules that plans have named so far.
type plans struct {
	known sync.Map // *weir.Rule to *policies
	mu    sync.Mutex
	count int
}

// maxPlans bounds the number of remembered rules.
const maxPlans = 4096

// policiesOf returns the policies of a plan's rule.
func (p *plans) policiesOf(l *limiter, r *weir.Rule) (*policies, error) {
	if r == nil {
		return nil, optionError("plan", "is nil: name a rule, of weir.Unlimited if there is no limit")
	}
	if known, ok := p.known.Load(r); ok {
		return known.(*policies), nil
	}
	if l.names[r.Name()] {
		return nil, optionError("plan", "has the name %q of another rule, with which it would share states: give it another", r.Name())
	}
	made, err := l.newPolicies(r)
	if err != nil {
		return nil, err
	}
	if !p.remember(r, made) {
		l.watch.say(manyPlans, "rules", maxPlans)
	}
	return made, nil
}

// remember keeps the policies of a rule, and reports false if there are too many.
func (p *plans) remember(r *weir.Rule, made *policies) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == maxPlans {
		return false
	}
	if _, known := p.known.LoadOrStore(r, made); !known {
		p.count++
	}
	return true
}
