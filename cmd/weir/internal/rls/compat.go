package rls

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	header "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// counted is a descriptor as envoyproxy/ratelimit would count it: every descriptor by itself, the whole number of hits
// even if they do not fit, compared afterwards.
type counted struct {
	envoyproxy.Match
	hits   int64
	before int64 // what remained before several hits
	exempt bool  // the limit is unlimited
	// instead is the limit of an override, or nil. Overrides change what is taken, and this records.
	instead *weir.Rule
}

// refuses reports whether no hit is ever within the limit.
func (m *counted) refuses() bool { return m.instead == nil && m.Limit.Refuses() }

// readCompat lists what the descriptors ask of the engine.
func (c *call) readCompat(s *Server) error {
	var replaced []string
	for _, d := range c.request.Descriptors {
		p := part{}
		p.counted.hits = HitsOf(c.request, d)
		if err := c.find(s, &p, d); err != nil {
			return err
		}
		if p.counted.Limit != nil {
			replaced = append(replaced, p.counted.Limit.Replaces...)
		}
		c.parts = append(c.parts, p)
	}
	for i := range c.parts {
		p := &c.parts[i]
		l := p.counted.Limit
		switch {
		case c.replaced != nil && c.replaced[i]:
			p.counted.Limit = nil
		case l == nil:
			p.reason = rules.ByDefault
		case l.Unlimited:
			p.counted.exempt, p.reason = true, rules.ByRule
		case l.Name != "" && slices.Contains(replaced, l.Name):
			p.counted.Limit = nil
		default:
			p.counted.instead = c.instead(s, l.Rule.For(p.counted.Key, 1))
			c.count(p, c.request.Descriptors[i].IsNegativeHits)
		}
	}
	return nil
}

// find finds the limit of a descriptor: its own one, if the domain has rules, or that of a file.
func (c *call) find(s *Server, p *part, d *envoy.RateLimitDescriptor) error {
	compat := c.in.compat
	switch {
	case !compat.Has(c.request.Domain):
		s.Stats.NotFound(c.request.Domain)
		return nil
	case d.Limit == nil:
		p.counted.Match = compat.Match(c.request.Domain, d.Entries)
		return nil
	}
	own, err := s.own(d.Limit, true)
	if err != nil {
		return err
	}
	p.own = own.shown
	p.counted.Match = envoyproxy.Match{Limit: own.window, Key: ownKey(c.request.Domain, d), Stat: envoyproxy.StatOf(c.request.Domain, d.Entries)}
	return nil
}

// instead returns the limit of an override of a key, or nil.
func (c *call) instead(s *Server, asked weir.Request) *weir.Rule {
	c.probe[0] = asked
	if q := s.Desk.Overridden(c.probe[:])[0]; q.Rule != asked.Rule {
		return q.Rule
	}
	return nil
}

// count lists the call of one descriptor.
func (c *call) count(p *part, negative bool) {
	l, cost := p.counted.Limit, p.counted.hits
	rule := l.Rule
	requests := &c.others
	switch {
	case negative:
		p.op = giveBack
	case cost == 0:
		p.op, cost = ask, 1
		if l.Beyond != nil {
			rule = l.Beyond // no hits are refused only if more than the limit were counted
		}
	case !l.Atomic && !c.in.compat.AllOrNothing:
		p.op = record
	case p.counted.refuses():
		p.op, c.decision.Allowed = record, false // it keeps the others from taking
	default:
		p.op, requests = take, &c.takes
	}
	if p.op == record && p.counted.instead != nil {
		rule = p.counted.instead
	}
	from := len(*requests)
	*requests = append(*requests, rule.For(p.counted.Key, cost))
	p.requests = (*requests)[from:len(*requests):len(*requests)]
}

// over reports whether the limit is exceeded.
func (p *part) over() bool {
	return p.refused || p.counted.refuses() && (p.op == record || p.op == take)
}

// used returns the count before the hits. Beyond the limit it is the limit.
func (p *part) used(limit int64, over bool) int64 {
	switch {
	case p.op == record && over && p.counted.hits == 1:
		return limit
	case p.op == record && p.counted.hits > 1:
		return limit - min(limit, p.counted.before)
	case p.refused:
		return limit - min(limit, p.decision.Remaining)
	}
	return max(0, limit-p.decision.Remaining-p.counted.hits)
}

// remains returns the hits that are left.
func (p *part) remains() int64 {
	l, left := p.counted.Limit, p.decision.Remaining
	switch {
	case p.over() || p.counted.refuses():
		return 0
	case p.op == ask && l.Beyond != l.Rule:
		left--
	}
	return min(left, int64(l.Shown.RequestsPerUnit)) // it is larger while the engine is away
}

// answerCompat writes the answer as envoyproxy/ratelimit does.
func (c *call) answerCompat(s *Server) *service.RateLimitResponse {
	n := len(c.parts)
	a := &service.RateLimitResponse{OverallCode: service.RateLimitResponse_OK, Statuses: make([]*service.RateLimitResponse_DescriptorStatus, n)}
	statuses, resets := make([]service.RateLimitResponse_DescriptorStatus, n), make([]durationpb.Duration, n)
	now, t := s.Now().Unix(), tally{quota: c.in.compat.Quota}
	for i := range c.parts {
		p, d := &c.parts[i], &statuses[i]
		a.Statuses[i], d.Code = d, service.RateLimitResponse_OK
		switch {
		case p.counted.exempt:
			d.LimitRemaining = math.MaxUint32
			continue
		case p.counted.Limit != nil:
			c.statusCompat(s, p, d, &resets[i], now)
		}
		t.add(p, d)
	}
	if t.over() {
		a.OverallCode = service.RateLimitResponse_OVER_LIMIT
		if c.in.compat.Shadow {
			a.OverallCode = service.RateLimitResponse_OK
			s.Stats.Shadowed.Add(1)
		}
	}
	if c.in.compat.Headers && t.bound != nil {
		a.ResponseHeadersToAdd = c.in.headersCompat(t.bound)
	}
	if c.in.compat.Metadata {
		a.DynamicMetadata = c.metadata(t.passed)
	}
	return a
}

// statusCompat writes the status of a descriptor with a limit, and counts it.
func (c *call) statusCompat(s *Server, p *part, d *service.RateLimitResponse_DescriptorStatus, reset *durationpb.Duration, now int64) {
	l, over := p.counted.Limit, p.over()
	switch {
	case p.counted.instead != nil:
		c.status(p, d, reset)
		d.CurrentLimit = cmp.Or(newShown(p.counted.instead).of(&p.decision), l.Shown)
	case l.Own:
		c.status(p, d, reset)
	default:
		period := int64(envoyproxy.Period(l.Shown.Unit) / time.Second)
		reset.Seconds = period - now%period
		d.CurrentLimit, d.DurationUntilReset, d.LimitRemaining = l.Shown, reset, clamped(p.remains())
	}
	if over && !l.Shadow {
		d.Code = service.RateLimitResponse_OVER_LIMIT
	} else {
		d.Code = service.RateLimitResponse_OK
	}
	p.tell(s.Stats.Of(p.counted.Stat), c.in.compat.NearRatio, over)
}

// tell counts the decision in the statistics.
func (p *part) tell(stats *envoyproxy.Counts, ratio float32, over bool) {
	hits := uint64(p.counted.hits)
	if p.op == giveBack {
		stats.Negative.Add(hits)
		return
	}
	limit := int64(p.counted.Limit.Shown.GetRequestsPerUnit())
	if p.counted.Limit.Own || p.counted.instead != nil {
		limit = p.decision.Limit
	}
	stats.Count(hits, uint64(p.used(limit, over)), uint64(limit), ratio, over, p.counted.Limit.Shadow)
}

// tally adds up the codes of descriptors.
type tally struct {
	quota                      bool // of all descriptors
	failed, quotas, overQuotas int
	passed                     []*part
	bound                      *service.RateLimitResponse_DescriptorStatus // that header fields describe
	least                      uint32
}

// add adds a descriptor. Header fields describe the last one that is over its limit, otherwise the one with the least left.
func (t *tally) add(p *part, d *service.RateLimitResponse_DescriptorStatus) {
	if d.CurrentLimit != nil && (t.bound == nil || d.LimitRemaining < t.least) {
		t.bound, t.least = d, d.LimitRemaining
	}
	quota := t.quota || p.counted.Limit != nil && p.counted.Limit.Quota
	if quota {
		t.quotas++
	}
	switch {
	case d.Code != service.RateLimitResponse_OVER_LIMIT:
		t.passed = append(t.passed, p)
	case quota:
		t.overQuotas++
	default:
		t.failed++
		t.bound, t.least = d, 0
	}
}

// over reports whether the call is over its limits: over one that is no quota, or over all quotas.
func (t *tally) over() bool { return t.failed > 0 || t.quotas > 0 && t.quotas == t.overQuotas }

// headersCompat are the three header fields of a descriptor.
func (in *inUse) headersCompat(d *service.RateLimitResponse_DescriptorStatus) []*header.HeaderValue {
	values := [3]int64{int64(d.CurrentLimit.RequestsPerUnit), int64(d.LimitRemaining), d.DurationUntilReset.GetSeconds()}
	list := make([]*header.HeaderValue, 0, len(values))
	for i, name := range in.compat.HeaderNames {
		list = append(list, &header.HeaderValue{Key: name, Value: strconv.FormatInt(values[i], 10)})
	}
	return list
}

// metadata is the dynamic metadata of a call: what was asked, and the metadata of the descriptors that passed.
func (c *call) metadata(passed []*part) *structpb.Struct {
	descriptors := make([]any, 0, len(c.parts))
	for _, d := range c.request.Descriptors {
		entries := make([]any, 0, len(d.Entries))
		for _, e := range d.Entries {
			entries = append(entries, e.Key+"="+e.Value)
		}
		fields := map[string]any{"entries": entries}
		if d.Limit != nil {
			fields["limit"] = fmt.Sprintf("requests_per_unit:%d unit:%s", d.Limit.GetRequestsPerUnit(), d.Limit.GetUnit())
		}
		if d.HitsAddend != nil {
			fields["hitsAddend"] = float64(d.HitsAddend.Value)
		}
		descriptors = append(descriptors, fields)
	}
	all := map[string]any{"domain": c.request.Domain, "descriptors": descriptors}
	if c.request.HitsAddend != 0 {
		all["hitsAddend"] = float64(c.request.HitsAddend)
	}
	merged := map[string]any{}
	for _, p := range passed {
		if p.counted.Limit != nil && p.counted.Metadata != nil {
			merge(merged, p.counted.Metadata.AsMap())
		}
	}
	if len(merged) > 0 {
		all["metadata"] = merged
	}
	s, _ := structpb.NewStruct(all) // it holds only what a struct can hold
	return s
}

// merge adds fields. If both have a field, structs are merged, and otherwise the first stays.
func merge(into, fields map[string]any) {
	for name, value := range fields {
		before, twice := into[name]
		if !twice {
			into[name] = value
			continue
		}
		inner, ok := before.(map[string]any)
		if more, too := value.(map[string]any); ok && too {
			merge(inner, more)
		}
	}
}
