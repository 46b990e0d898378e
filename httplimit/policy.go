package httplimit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// policies describe one rule for header fields and refusals. They are made once for each rule.
type policies struct {
	each    []policy // of each limit, in order; those that clients need not know have no name
	fine    bool     // one of them needs more than whole seconds
	draft11 string   // RateLimit-Policy
	older   string   // RateLimit-Policy of drafts 06 and 07
}

// policy describes one limit of a rule to clients.
type policy struct {
	limit    weir.Limit
	name     string // the rule's, with the ordinal of the limit if it has several
	quoted   string // the name as a string of a structured field
	capacity int64
	window   time.Duration // the longest time until the capacity is back; 0 if there is none
	held     bool          // units are held, not spent
	coarse   bool          // whole seconds tell enough
	told     bool          // the LimitReset of a decision tells when a cost fits again
	rate     weir.Rate     // at which units come back one by one, if announced; otherwise zero
}

// newPolicies describes a rule.
func newPolicies(r *weir.Rule) *policies {
	s := &policies{}
	limits := r.Limits()
	several := len(limits) > 1 && !(len(limits) == 2 && weir.Kit.Compiled(r).Bans)
	for i, limit := range limits {
		described := weir.Describe(limit)
		p := newPolicy(limit, &described)
		if (!described.Stateless || described.Capacity == 0) && !described.Bans { // a ban has no units to announce
			if p.name = r.Name(); several {
				p.name += "-" + strconv.Itoa(i+1)
			}
			p.quoted = quoted(p.name)
			s.list(p)
		}
		s.each, s.fine = append(s.each, p), s.fine || !p.coarse
	}
	return s
}

// policiesOf returns the policies of a rule.
func policiesOf(r *weir.Rule) *policies { return enginekit.Keep(r, newPolicies) }

// binding returns the policy that refuses or, for an admission, the one with the least remaining; nil if there is none.
func binding(d *weir.Decision, requests []weir.Request) *policy {
	s := policiesOf(requests[enginekit.Binding(d, requests)].Rule)
	if i := int(d.LimitIndex); i < len(s.each) && s.each[i].name != "" && (!d.Allowed || s.each[i].capacity == d.Limit) {
		return &s.each[i]
	}
	return nil
}

func newPolicy(limit weir.Limit, d *weir.Description) policy {
	fades := d.Refill == weir.RefillWindow && d.Calendar == 0 && d.Reset > d.Window // a window that ends does not bring all units back
	p := policy{limit: limit, capacity: d.Capacity, window: d.Window, held: d.Held}
	p.coarse = d.Held || d.Stateless || d.Calendar != 0 || d.Window >= fineBelow && !fades
	switch {
	case d.Refill == weir.RefillRate && !d.Delays:
		p.told, p.rate = true, d.Rate
	case d.Refill == weir.RefillWindow:
		p.told = !fades
	}
	return p
}

// list adds the items of a policy to the header fields.
func (s *policies) list(p policy) {
	item := p.quoted + ";q=" + strconv.FormatInt(min(p.capacity, maxInteger), 10)
	switch {
	case p.held:
		item += `;qu="concurrent-requests"`
	case p.window > 0:
		w := strconv.FormatInt(seconds(p.window), 10)
		item += ";w=" + w
		if p.window%time.Second != 0 {
			item += paramWindow + strconv.FormatInt(micros(p.window), 10)
		}
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

// seconds returns t in whole seconds, rounded up.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
