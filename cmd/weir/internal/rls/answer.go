package rls

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	header "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/httplimit"
)

// windows are the units by the length of the window.
var windows = map[time.Duration]service.RateLimitResponse_RateLimit_Unit{
	time.Second: service.RateLimitResponse_RateLimit_SECOND,
	time.Minute: service.RateLimitResponse_RateLimit_MINUTE,
	time.Hour:   service.RateLimitResponse_RateLimit_HOUR,
	day:         service.RateLimitResponse_RateLimit_DAY,
	7 * day:     service.RateLimitResponse_RateLimit_WEEK,
	30 * day:    service.RateLimitResponse_RateLimit_MONTH,
	365 * day:   service.RateLimitResponse_RateLimit_YEAR,
}

// calendarUnits are the units of quotas. Envoy has no quarter.
var calendarUnits = map[weir.CalendarUnit]service.RateLimitResponse_RateLimit_Unit{
	weir.Day:   service.RateLimitResponse_RateLimit_DAY,
	weir.Week:  service.RateLimitResponse_RateLimit_WEEK,
	weir.Month: service.RateLimitResponse_RateLimit_MONTH,
	weir.Year:  service.RateLimitResponse_RateLimit_YEAR,
}

// shown is a rule in answers: one message for each of its limits, which all answers share.
type shown struct {
	rule       *weir.Rule
	capacities []int64
	limits     []*service.RateLimitResponse_RateLimit
}

// newShown describes a rule. A capacity that comes back in no unit of Envoy has none.
func newShown(r *weir.Rule) *shown {
	s := &shown{rule: r}
	for _, limit := range r.Limits() {
		d := weir.Describe(limit)
		unit := windows[d.Window]
		if d.Calendar != 0 {
			unit = calendarUnits[d.Calendar]
		}
		s.capacities = append(s.capacities, d.Capacity)
		s.limits = append(s.limits, &service.RateLimitResponse_RateLimit{
			Name: r.Name(), RequestsPerUnit: clamped(d.Capacity), Unit: unit,
		})
	}
	return s
}

// of returns the message of the binding limit. A policy that admits in place of the engine has none.
func (s *shown) of(d *weir.Decision) *service.RateLimitResponse_RateLimit {
	if at := int(d.LimitIndex); at < len(s.limits) && (!d.Allowed || s.capacities[at] == d.Limit) {
		return s.limits[at]
	}
	return nil
}

func clamped(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// message is an answer to one descriptor, in one allocation.
type message struct {
	service.RateLimitResponse
	status service.RateLimitResponse_DescriptorStatus
	reset  durationpb.Duration
	list   [1]*service.RateLimitResponse_DescriptorStatus
}

// answer writes the answer.
func (c *call) answer() *service.RateLimitResponse {
	m := &message{}
	a := &m.RateLimitResponse
	a.OverallCode, a.Statuses = service.RateLimitResponse_OK, m.list[:]
	if n := len(c.parts); n > 1 {
		a.Statuses = make([]*service.RateLimitResponse_DescriptorStatus, n)
		statuses, resets := make([]service.RateLimitResponse_DescriptorStatus, n), make([]durationpb.Duration, n)
		for i := range c.parts {
			c.status(&c.parts[i], &statuses[i], &resets[i])
			a.Statuses[i] = &statuses[i]
		}
	} else {
		c.status(&c.parts[0], &m.status, &m.reset)
		m.list[0] = &m.status
	}
	c.describe(a)
	return a
}

// status writes the status of a descriptor.
func (c *call) status(p *part, s *service.RateLimitResponse_DescriptorStatus, reset *durationpb.Duration) {
	s.Code = service.RateLimitResponse_OK
	if p.refused {
		s.Code = service.RateLimitResponse_OVER_LIMIT
	}
	d := &p.decision
	if d.Rule == "" {
		if p.rule != nil && !p.refused {
			s.LimitRemaining = math.MaxUint32
		}
		return
	}
	s.CurrentLimit = c.shownOf(p, p.requests[enginekit.Binding(d, p.requests)].Rule).of(d)
	s.LimitRemaining = clamped(d.Remaining)
	after := d.LimitReset
	if p.refused {
		after = d.RetryAfter
	}
	if after != weir.Never {
		reset.Seconds = seconds(after)
		s.DurationUntilReset = reset
	}
}

// shownOf returns what answers show of a rule that has decided: one of a file, in the call, or of an override.
func (c *call) shownOf(p *part, rule *weir.Rule) *shown {
	if p.own != nil && p.own.rule == rule {
		return p.own
	}
	if known := c.in.shown[rule]; known != nil {
		return known
	}
	return newShown(rule)
}

// seconds returns whole seconds, rounded up: Envoy reads no fractions.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// describe adds what concerns the whole call: the code, the header fields, and of a refusal the rule that refuses.
func (c *call) describe(a *service.RateLimitResponse) {
	bound := c.bound()
	if bound == nil {
		return
	}
	d := &bound.decision
	if d.Rule != "" && (c.in.format != httplimit.NoHeaders || bound.refused) {
		fields := http.Header{}
		httplimit.AddFields(fields, c.in.format, *d, nil, bound.requests...)
		a.ResponseHeadersToAdd = headers(fields)
	}
	if !bound.refused {
		return
	}
	a.OverallCode = service.RateLimitResponse_OVER_LIMIT
	rule, metadata := bound.rule, map[string]any{}
	if d.Rule != "" {
		rule = c.in.config.Rule(d.Rule)
		metadata["rule"], metadata["key"] = d.Rule, d.Key
		if d.RetryAfter != weir.Never {
			metadata["retry_after"] = seconds(d.RetryAfter)
		}
		if d.Cause == weir.ByBan {
			metadata["cause"] = d.Cause.String()
		}
	}
	if rule != nil {
		metadata["rule"] = rule.Name
		a.RawBody = []byte(rule.Message)
	}
	a.DynamicMetadata, _ = structpb.NewStruct(metadata) // texts and a number always fit
}

// bound returns the descriptor that binds the call: of the refused ones, that which frees last; otherwise, that with the
// least remaining. It is nil if no limit decided.
func (c *call) bound() (bound *part) {
	for i := range c.parts {
		p := &c.parts[i]
		switch {
		case p.op == giveBack || !p.refused && p.decision.Rule == "":
		case bound == nil, p.refused && !bound.refused:
			bound = p
		case p.refused == bound.refused:
			if p.refused && p.decision.RetryAfter > bound.decision.RetryAfter || !p.refused && p.decision.Remaining < bound.decision.Remaining {
				bound = p
			}
		}
	}
	return bound
}

// headers lists header fields in order.
func headers(fields http.Header) (list []*header.HeaderValue) {
	for name, values := range fields {
		list = append(list, &header.HeaderValue{Key: strings.ToLower(name), Value: strings.Join(values, ", ")})
	}
	slices.SortFunc(list, func(a, b *header.HeaderValue) int { return strings.Compare(a.Key, b.Key) })
	return list
}
