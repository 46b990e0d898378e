package httplimit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// policies describe one rule for header fields and refusals. The middleware makes them once.
type policies struct {
	each    []policy
	draft11 string // RateLimit-Policy
	older   string // RateLimit-Policy of drafts 06 and 07
}

// policy describes one limit of a rule to clients.
type policy struct {
	name     string // the rule's, with the ordinal of the limit if it has several
	quoted   string // the name as a string of a structured field
	capacity int64
	window   time.Duration // the longest time in which the capacity comes back; 0 if there is none
	reset    time.Duration // the longest time until nothing is used
	rate     weir.Rate     // at which units come back one by one, or zero
	held     bool          // units are held, not spent
}

// newPolicies describes a rule.
func newPolicies(r *weir.Rule) *policies {
	s := &policies{}
	limits := r.Limits()
	for i, limit := range limits {
		described := weir.Describe(limit)
		p := newPolicy(&described)
		if p.name = r.Name(); len(limits) > 1 {
			p.name += "-" + strconv.Itoa(i+1)
		}
		p.quoted = quoted(p.name)
		if !described.Stateless || described.Capacity == 0 {
			s.add(p)
		}
	}
	return s
}

// policiesOf returns the policies of a rule of the middleware.
func policiesOf(s *front.Set) *policies { return s.Note.(*policies) }

// binding returns the policy of a decision, or nil if its rule has no limit to describe.
func binding(a *ask) *policy {
	at := a.Binding()
	if s := policiesOf(a.Sets[at]); a.Decision.Allowed {
		return s.tightest(a.Decision.Limit)
	} else {
		return s.refusing(&a.Decision, a.Requests[at].Cost)
	}
}

func newPolicy(d *weir.Description) policy {
	p := policy{capacity: d.Capacity, window: d.Window, reset: d.Reset, held: d.Held}
	if d.Smooth {
		p.rate = d.Rate
	}
	return p
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
	if p.rate.Count > 0 {
		return min(reset, p.rate.Of(max(0, p.capacity-d.Remaining)))
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
