package rls

import (
	"context"
	"math"

	header "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// decideOverlaid asks the rules of the overlay first, all or nothing. If they refuse, no pushed limit is counted; otherwise
// those are, except the ones that rules replace or exempt.
func (s *Server) decideOverlaid(ctx context.Context, who *auth.Identity, in *inUse, r *service.RateLimitRequest) (*service.RateLimitResponse, error) {
	replaced := make([]bool, len(r.Descriptors))
	over, err := s.decide(ctx, who, in.over, r, replaced)
	if err != nil {
		return nil, err
	}
	refused := over.OverallCode == service.RateLimitResponse_OVER_LIMIT
	if refused && !in.compat.Shadow {
		if in.compat.Headers {
			over.ResponseHeadersToAdd = append(over.ResponseHeadersToAdd, headersOf(in, over.Statuses)...)
		}
		return over, nil
	}
	pushed, err := s.decide(ctx, who, in, r, replaced)
	if err != nil {
		return nil, err
	}
	for i, status := range over.Statuses {
		if tighter(status, pushed.Statuses[i]) {
			pushed.Statuses[i] = status
		}
	}
	if in.compat.Headers {
		pushed.ResponseHeadersToAdd = headersOf(in, pushed.Statuses)
	}
	return pushed, nil
}

// tighter reports whether the status of an overlay says more than that of a pushed limit.
func tighter(over, pushed *service.RateLimitResponse_DescriptorStatus) bool {
	if pushed.Code == service.RateLimitResponse_OVER_LIMIT {
		return false
	}
	left := pushed.LimitRemaining
	if pushed.CurrentLimit == nil {
		left = math.MaxUint32
	}
	return over.CurrentLimit != nil && over.LimitRemaining <= left || over.Code == service.RateLimitResponse_OVER_LIMIT
}

// headersOf describes the last status that is over its limit, otherwise the one with the least left.
func headersOf(in *inUse, statuses []*service.RateLimitResponse_DescriptorStatus) []*header.HeaderValue {
	var bound *service.RateLimitResponse_DescriptorStatus
	for _, status := range statuses {
		over := status.Code == service.RateLimitResponse_OVER_LIMIT
		switch {
		case status.CurrentLimit == nil:
		case bound == nil, over, bound.Code != service.RateLimitResponse_OVER_LIMIT && status.LimitRemaining < bound.LimitRemaining:
			bound = status
		}
	}
	if bound == nil {
		return nil
	}
	return in.headersCompat(bound)
}
