package rls

import (
	"context"
	"slices"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
)

// Matched is the match of a call with the rules.
type Matched struct {
	Requests []weir.Request // of all descriptors
	Refused  bool           // a rule refuses a descriptor without the engine
}

// Match matches a call of a service beside Envoy's with the rules, each descriptor with the given hits. The
// caller may ask for all of it. It notes decisions without the engine of a call that takes.
func (s *Server) Match(ctx context.Context, r *service.RateLimitRequest, takes bool, hits func(*envoy.RateLimitDescriptor) int64) (Matched, error) {
	c, err := s.listed(ctx, r, func(d *envoy.RateLimitDescriptor) (op, int64) { return record, hits(d) })
	if err != nil {
		return Matched{}, err
	}
	defer c.free()
	for i := range c.parts {
		if p := &c.parts[i]; takes && p.reason != "" {
			s.Desk.NoteJudged(ctx, nameOf(p.rule), !p.refused, p.reason)
		}
	}
	return Matched{slices.Clone(c.others), !c.decision.Allowed}, nil
}

// Ask answers whether one hit of each descriptor would be admitted, and counts nothing.
func (s *Server) Ask(ctx context.Context, r *service.RateLimitRequest) (*service.RateLimitResponse, error) {
	c, err := s.listed(ctx, r, func(*envoy.RateLimitDescriptor) (op, int64) { return ask, 1 })
	if err != nil {
		return nil, err
	}
	defer c.free()
	if err := c.decide(ctx, s.Desk); err != nil {
		return nil, s.Failed(ctx, err)
	}
	return c.answer(), nil
}

// listed returns a call of a service beside Envoy's, with the questions of its descriptors for the engine.
func (s *Server) listed(ctx context.Context, r *service.RateLimitRequest, asks func(*envoy.RateLimitDescriptor) (op, int64)) (*call, error) {
	in := s.use.Load()
	if err := checkBeside(r, in.compat != nil); err != nil {
		s.Stats.Refused.Add(1)
		return nil, err
	}
	c := calls.Get().(*call)
	c.begin(in, r)
	for _, d := range r.Descriptors {
		of, hits := asks(d)
		if err := c.put(s, d, part{op: of}, hits); err != nil {
			c.free()
			return nil, err
		}
	}
	if err := c.allowed(s.caller(ctx)); err != nil {
		c.free()
		return nil, err
	}
	return c, nil
}

// checkBeside returns an error for a call that cannot be decided.
func checkBeside(r *service.RateLimitRequest, compat bool) error {
	if compat {
		return status.Error(codes.FailedPrecondition, "rls: with --compat envoyproxy only Envoy's service decides; weir rules import envoyproxy makes rules for this one, too")
	}
	if err := check(r, false); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	for i, d := range r.Descriptors {
		if d.IsNegativeHits {
			return status.Errorf(codes.InvalidArgument, "rls: descriptors[%d]: is_negative_hits gives hits back, which only ShouldRateLimit of Envoy's service does", i)
		}
	}
	return nil
}
