// Package kuadrant answers the rate limit service of Kuadrant's gateways, kuadrant.service.ratelimit.v1, as limitador does.
//
// Descriptors are those of Envoy's service, and package rls makes requests of them. The desk decides, counts and holds. This
// package decodes and encodes. docs/howto/kuadrant.md describes all of it.
package kuadrant

import (
	"context"
	"errors"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/kuadrantpb"
	"github.com/weirflow/weir/cmd/weir/internal/rls"
	"github.com/weirflow/weir/layer"
)

// Server answers calls by the rules in use. It is safe for concurrent use.
type Server struct {
	kuadrantpb.UnimplementedRateLimitServiceServer
	Envoy *rls.Server        // finds the rules of descriptors
	Holds decide.HoldOptions // Life is the longest, and that of a Reserve without a ttl
}

// CheckRateLimit asks whether one hit would be admitted, and ignores the hits of the call.
func (s *Server) CheckRateLimit(ctx context.Context, r *service.RateLimitRequest) (answer *service.RateLimitResponse, err error) {
	defer s.Envoy.Recover(&err)
	return s.Envoy.Ask(ctx, r)
}

// Report counts the hits of the call.
func (s *Server) Report(ctx context.Context, r *service.RateLimitRequest) (answer *service.RateLimitResponse, err error) {
	defer s.Envoy.Recover(&err)
	m, err := s.Envoy.Match(ctx, r, false, func(d *envoy.RateLimitDescriptor) int64 { return rls.HitsOf(r, d) })
	if err == nil {
		err = s.failed(ctx, s.Envoy.Desk.Report(ctx, m.Requests))
	}
	return &service.RateLimitResponse{OverallCode: service.RateLimitResponse_OK}, err
}

// Reserve holds an amount for a request whose cost is known only after it. An amount of 0 asks for room for one unit.
func (s *Server) Reserve(ctx context.Context, r *kuadrantpb.ReserveRequest) (answer *kuadrantpb.ReserveResponse, err error) {
	defer s.Envoy.Recover(&err)
	o := s.Holds
	if o.Life, err = s.lifeOf(r); err != nil {
		return nil, err
	}
	m, err := s.match(ctx, r, true, "amount", max(r.Amount, 1))
	if err != nil {
		return nil, err
	}
	id := ""
	switch {
	case m.Refused:
	case r.Amount == 0:
		id, err = s.Envoy.Desk.HoldNone(ctx, r.Domain, m.Requests, o.Life)
	default:
		id, err = s.Envoy.Desk.Hold(ctx, r.Domain, m.Requests, o)
	}
	code := service.RateLimitResponse_OVER_LIMIT
	if id != "" {
		code = service.RateLimitResponse_OK
	}
	return &kuadrantpb.ReserveResponse{Code: code, ReservationId: id}, s.failed(ctx, err)
}

// lifeOf returns the life of a hold.
func (s *Server) lifeOf(r *kuadrantpb.ReserveRequest) (time.Duration, error) {
	if r.Ttl == nil {
		return s.Holds.Life, nil
	}
	life := r.Ttl.AsDuration()
	if err := r.Ttl.CheckValid(); err != nil || life <= 0 {
		return 0, status.Errorf(codes.InvalidArgument, "kuadrant: ttl is %v, want a duration above 0", life)
	}
	return min(life, s.Holds.Life), nil
}

// Commit counts the true cost of a request, and ends its hold.
func (s *Server) Commit(ctx context.Context, r *kuadrantpb.CommitRequest) (answer *kuadrantpb.CommitResponse, err error) {
	defer s.Envoy.Recover(&err)
	m, err := s.match(ctx, r, false, "actual_amount", r.ActualAmount)
	if err != nil {
		return nil, err
	}
	stood, err := s.Envoy.Desk.Commit(ctx, r.Domain, r.ReservationId, m.Requests)
	return &kuadrantpb.CommitResponse{ReservationReleased: stood}, s.failed(ctx, err)
}

// match returns what the rules make of descriptors that all have an amount.
func (s *Server) match(ctx context.Context, r interface {
	GetDomain() string
	GetDescriptors() []*envoy.RateLimitDescriptor
}, takes bool, field string, amount uint64) (rls.Matched, error) {
	if amount > weir.MaxCount {
		return rls.Matched{}, status.Errorf(codes.InvalidArgument, "kuadrant: %s is %d, want at most %d", field, amount, int64(weir.MaxCount))
	}
	asked := &service.RateLimitRequest{Domain: r.GetDomain(), Descriptors: r.GetDescriptors()}
	return s.Envoy.Match(ctx, asked, takes, func(*envoy.RateLimitDescriptor) int64 { return int64(amount) })
}

// failed maps an error of the desk to a status.
func (s *Server) failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case err == decide.ErrHolds || err == decide.ErrCrowded:
		return status.Error(codes.ResourceExhausted, "kuadrant: "+err.Error())
	case errors.Is(err, weir.ErrRequest) || weir.WasCounted(err) == weir.CountedNo:
		return s.Envoy.Failed(ctx, err)
	}
	if layer.Left(ctx, err) {
		return s.Envoy.Failed(ctx, err)
	}
	_ = s.Envoy.Failed(ctx, err)
	return status.Error(codes.Unavailable, "kuadrant: the engine gave no answer, and may have counted the call")
}
