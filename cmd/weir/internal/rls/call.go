package rls

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// call is one call on its way to an answer. Calls are reused.
type call struct {
	in       *inUse
	request  *service.RateLimitRequest
	source   descriptor
	outcome  rules.Outcome
	parts    []part
	takes    []weir.Request // of all descriptors that take, for one decision
	others   []weir.Request // of those that ask or give back
	beside   []weir.Request // of shadows and candidates
	replaced []bool         // descriptors whose pushed limit is not counted; nil for none
	told     afterCosts
	asked    []weir.Call
	results  []weir.Result
	probe    [1]weir.Request
	decision decide.Made // on takes
}

// part is one descriptor of a call.
type part struct {
	op            op
	requests      []weir.Request  // empty if the engine is not asked; then those that its decision is on
	again         []weir.Request  // what to peek at for its figures, once it is known who paid
	told          []weir.Request  // costs that are counted whatever is left
	toldDecisions []weir.Decision // on each of these
	own           *shown          // of a limit in the call
	decision      weir.Decision   // its own figures
	refused       bool
	answered      bool         // before the rest of the call was asked
	rule          *rules.Rule  // that refuses or exempts it without the engine
	reason        rules.Reason // why the engine is not asked
	replaces      bool         // its pushed limit is not counted
	counted       counted      // of a descriptor that envoyproxy/ratelimit would count
}

// op is the operation of a descriptor.
type op uint8

const (
	take     op = iota
	ask         // of no hits: whether there is room for one
	giveBack    // of negative hits
	record      // count hits, whether they fit or not
)

var calls = sync.Pool{New: func() any { return new(call) }}

// decide answers a call that is valid. The pushed limits of replaced descriptors are not counted.
func (s *Server) decide(ctx context.Context, who *auth.Identity, in *inUse, r *service.RateLimitRequest, replaced []bool) (*service.RateLimitResponse, error) {
	c := calls.Get().(*call)
	defer c.free()
	c.begin(in, r)
	c.replaced = replaced
	if err := c.read(s); err != nil {
		return nil, err
	}
	if err := c.allowed(who); err != nil {
		return nil, err
	}
	if in.after {
		c.countTold(ctx, who, s.Desk)
	}
	if err := c.decide(ctx, s.Desk); err != nil {
		return nil, s.Failed(ctx, err)
	}
	c.tell(ctx, s.Desk)
	s.Desk.Took(who, c.takes, c.beside, c.decision)
	if c.in.compat != nil {
		return c.answerCompat(s), nil
	}
	if in.pushed != nil {
		for i := range c.parts {
			replaced[i] = c.parts[i].replaces
		}
	}
	if in.after {
		c.showTold()
	}
	for i := range c.parts {
		c.parts[i].requests = s.Desk.Overridden(c.parts[i].requests)
	}
	return c.answer(), nil
}

// tell notes the decisions of rules without the engine, and each record.
func (c *call) tell(ctx context.Context, d *decide.Desk) {
	for i := range c.parts {
		p := &c.parts[i]
		switch {
		case p.reason != "" && p.op == take:
			d.NoteJudged(ctx, nameOf(p.rule), !p.refused, p.reason)
		case p.op == record && len(p.requests) > 0 && p.counted.Limit != nil:
			d.Recorded(p.requests, !p.over() || p.counted.Limit.Shadow || c.in.compat.Shadow)
		}
	}
}

// read lists what the descriptors ask of the engine.
func (c *call) read(s *Server) error {
	if c.in.compat != nil {
		return c.readCompat(s)
	}
	for _, d := range c.request.Descriptors {
		if err := c.add(s, d); err != nil {
			return err
		}
	}
	return nil
}

// Failed maps an error of the engine to a status. Envoy's failure mode decides about UNAVAILABLE. A caller that has left gets no
// answer.
func (s *Server) Failed(ctx context.Context, err error) error {
	if bad, ok := errors.AsType[*weir.RequestError](err); ok {
		s.Stats.Refused.Add(1)
		return status.Errorf(codes.InvalidArgument, "rls: %s %s", bad.Field, bad.Reason)
	}
	if s.Desk.Failed(ctx, err) {
		return status.FromContextError(ctx.Err()).Err()
	}
	s.Stats.Undecided.Add(1)
	return status.Error(codes.Unavailable, "rls: the engine could not decide, and admitted nothing")
}

func nameOf(r *rules.Rule) string {
	if r == nil {
		return ""
	}
	return r.Name
}

func (c *call) begin(in *inUse, r *service.RateLimitRequest) {
	c.in, c.request, c.decision = in, r, decide.Made{Decision: weir.Decision{Allowed: true}}
	c.source.domain = r.Domain
}

// free keeps the memory of the call, without what it refers to.
func (c *call) free() {
	if cap(c.takes)+cap(c.others)+cap(c.beside) > 4*weir.MaxRequests {
		return
	}
	clear(c.parts)
	clear(c.takes)
	clear(c.others)
	clear(c.beside)
	clear(c.told.costs)
	clear(c.told.beside)
	clear(c.asked)
	*c = call{outcome: c.outcome, parts: c.parts[:0], takes: c.takes[:0], others: c.others[:0], beside: c.beside[:0], told: afterCosts{c.told.costs[:0], c.told.beside[:0]}, asked: c.asked[:0], results: c.results[:0]}
	calls.Put(c)
}

// add lists what a descriptor asks of the engine.
func (c *call) add(s *Server, d *envoy.RateLimitDescriptor) error {
	hits := HitsOf(c.request, d)
	p := part{}
	switch {
	case d.IsNegativeHits:
		p.op = giveBack
	case hits == 0:
		p.op, hits = ask, 1
	}
	return c.put(s, d, p, hits)
}

// put lists what a descriptor with these hits asks of the engine.
func (c *call) put(s *Server, d *envoy.RateLimitDescriptor, p part, hits int64) error {
	requests := &c.others
	if p.op == take {
		requests = &c.takes
	}
	from := len(*requests)
	if d.Limit != nil && c.in.pushed == nil {
		own, err := s.own(d.Limit, false)
		if err != nil {
			return err
		}
		p.own = own.shown
		*requests = append(*requests, own.rule.For(ownKey(c.request.Domain, d), hits))
	} else {
		c.source.entries, c.source.chosen, c.source.pushed = d.Entries, nil, envoyproxy.Match{}
		if c.in.pushed != nil {
			c.source.pushed = c.in.pushed.Match(c.request.Domain, d.Entries)
		}
		c.in.config.Decide(&c.source, hits, &c.outcome)
		if c.outcome.Verdict != rules.Refuse && mayRepeat(d.Entries) {
			c.denyRepeated(hits)
		}
		c.match(&p, hits, requests)
	}
	p.requests = (*requests)[from:len(*requests):len(*requests)]
	c.parts = append(c.parts, p)
	return nil
}

// fewEntries are compared with each other, without memory.
const fewEntries = 16

// mayRepeat reports whether some keys may be repeated (repeated.go).
func mayRepeat(entries []*envoy.RateLimitDescriptor_Entry) bool {
	if len(entries) > fewEntries {
		return true
	}
	for i, e := range entries {
		for _, before := range entries[:i] {
			if before.Key == e.Key {
				return true
			}
		}
	}
	return false
}

// match takes over what the rules make of a descriptor.
func (c *call) match(p *part, hits int64, requests *[]weir.Request) {
	o := &c.outcome
	if o.Verdict != rules.Ask {
		o.Requests = o.Requests[:0]
	}
	if c.in.after {
		if p.op == take {
			c.in.ones.note(o, hits)
		}
		c.told.takeFrom(o, p, hits)
	}
	*requests = append(*requests, o.Requests...)
	if p.op == take {
		c.beside = append(c.beside, o.Beside...)
	}
	p.refused, p.rule, p.reason = o.Verdict == rules.Refuse && p.op != giveBack, o.Rule, o.Reason
	if c.in.pushed != nil {
		p.replaces = o.Verdict == rules.Allow && o.Reason == rules.ByRule || slices.ContainsFunc(o.Rules, func(r *rules.Rule) bool { return r.Replaces != "" })
		if p.reason == rules.ByDefault {
			p.reason = "" // the pushed limits have a say
		}
	}
	if p.refused {
		c.decision.Allowed = false
	}
}

// descriptor is the source of the attributes of a descriptor.
type descriptor struct {
	domain  string
	entries []*envoy.RateLimitDescriptor_Entry
	chosen  map[string]string // in place of the first value of repeated keys
	pushed  envoyproxy.Match  // the limit of a control plane that it finds
}

// Attribute returns the domain, or the value of the first entry with the key, unless another one is chosen.
func (d *descriptor) Attribute(name string) (value string, ok bool) {
	key, ok := strings.CutPrefix(name, "descriptor.")
	if !ok {
		return d.other(name)
	}
	if value, ok = d.chosen[key]; ok {
		return value, true
	}
	for _, e := range d.entries {
		if e.Key == key {
			return e.Value, true
		}
	}
	return "", false
}

// other returns an attribute that is of no entry.
func (d *descriptor) other(name string) (string, bool) {
	switch l := d.pushed.Limit; {
	case name == "domain":
		return d.domain, true
	case l == nil:
	case name == rules.PushedLimit:
		return l.ShownName(), true
	case name == rules.PushedKey:
		return d.pushed.Key, true
	}
	return "", false
}
