// Package rls answers Envoy's rate limit service, envoy.service.ratelimit.v3, by the rules of files.
//
// One call goes this way. [Server.ShouldRateLimit] checks it. Each descriptor becomes a source of attributes, and
// [rules.Config.Decide] makes requests of it (call.go). The desk decides them all in one call, all or nothing. Each
// descriptor then gets its own status, and the rule that binds the call stands in the header fields and the metadata
// (answer.go). [Port] serves the calls over gRPC, with health and reflection, and json.go over HTTP. docs/howto/envoy.md
// describes all of it.
package rls

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/httplimit"
)

// Options configure a Server.
type Options struct {
	Desk *decide.Desk
	// Headers is the format of the header fields for Envoy's client. Retry-After is in all refusals.
	Headers httplimit.Headers
	Log     *slog.Logger
	// Auth says who asks over gRPC. ServeHTTP asks the port of its request.
	Auth *auth.Port
	// Stats are those of rules of envoyproxy/ratelimit. Default: new ones.
	Stats *envoyproxy.Stats
	// Now is the clock for the ends of windows. Default: time.Now.
	Now func() time.Time
}

// Server answers calls by the rules in use. It is safe for concurrent use.
type Server struct {
	service.UnimplementedRateLimitServiceServer
	Options
	use       atomic.Pointer[inUse]
	ownLimits decide.Limits[ownLimit, *ruled]
	large     atomic.Int32 // calls in JSON above smallCall that are being read or decided
}

// inUse are the rules in use, with prepared parts of answers.
type inUse struct {
	config *rules.Config
	shown  map[*weir.Rule]*shown
	format httplimit.Headers
	after  bool // a rule charges after the work
	ones   ones
	compat *envoyproxy.Config // nil for rules in the daemon's own form
	over   *inUse             // rules in that form that overlay those of compat; nil without
	pushed *envoyproxy.Config // those that these rules overlay; nil except in over
}

// New returns a Server.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Stats == nil {
		o.Stats = &envoyproxy.Stats{}
	}
	s := &Server{Options: o}
	s.Use(o.Desk.InForce().Config)
	return s
}

// Use answers later calls by other rules.
func (s *Server) Use(config *rules.Config) {
	u := &inUse{config: config, shown: map[*weir.Rule]*shown{}, format: s.Headers}
	limits := config.Limits()
	for _, r := range limits {
		u.shown[r], u.after = newShown(r), u.after || r.ChargesAfter()
		if r.Delays() {
			s.Log.Warn("the rule admits with a delay, and Envoy does not wait; add nodelay to the leaky bucket, or use a token bucket", "rule", r.Name())
		}
	}
	u.ones = newOnes(s.Log, config)
	u.compat, _ = config.Foreign.(*envoyproxy.Config)
	if u.compat != nil && config.Overlaid() {
		over := *u
		over.compat, over.pushed = nil, u.compat
		u.over = &over
	}
	s.use.Store(u)
}

// maxDescriptors bounds the descriptors of a call.
const maxDescriptors = 1024

// ShouldRateLimit decides one call over gRPC.
func (s *Server) ShouldRateLimit(ctx context.Context, r *service.RateLimitRequest) (*service.RateLimitResponse, error) {
	return s.answer(ctx, s.caller(ctx), r)
}

// answer decides one call of a caller.
func (s *Server) answer(ctx context.Context, who *auth.Identity, r *service.RateLimitRequest) (answer *service.RateLimitResponse, err error) {
	defer s.Recover(&err)
	in := s.use.Load()
	if err := check(r, in.compat != nil); err != nil {
		s.Stats.Refused.Add(1)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if in.compat != nil && in.compat.Unloaded {
		s.Stats.Refused.Add(1)
		return nil, status.Error(codes.Unavailable, "rls: no rate limit configuration loaded: the control plane has pushed no rules yet")
	}
	if in.over != nil {
		return s.decideOverlaid(ctx, who, in, r)
	}
	return s.decide(ctx, who, in, r, nil)
}

// Recover, deferred by a call, makes an error of a panic and logs it.
func (s *Server) Recover(err *error) {
	if failed := recover(); failed != nil {
		s.Log.Error("a call of the rate limit service failed", "panic", failed, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "rls: the call failed, and the log of the daemon says why")
	}
}

// check returns an error for a call that cannot be decided. Descriptors that name nothing have no limit in
// envoyproxy/ratelimit.
func check(r *service.RateLimitRequest, compat bool) error {
	switch n := len(r.GetDescriptors()); {
	case r.GetDomain() == "":
		return fmt.Errorf("rls: domain is empty")
	case n == 0 || n > maxDescriptors:
		return fmt.Errorf("rls: descriptors are %d, want 1 to %d", n, maxDescriptors)
	}
	for i, d := range r.GetDescriptors() {
		err := checkNumbers(d)
		if err == nil && !compat {
			err = checkEntries(d)
		}
		if err != nil {
			return fmt.Errorf("rls: descriptors[%d]: %w", i, err)
		}
	}
	return nil
}

func checkEntries(d *envoy.RateLimitDescriptor) error {
	if len(d.GetEntries()) == 0 {
		return fmt.Errorf("entries are empty")
	}
	for i, e := range d.Entries {
		if e.GetKey() == "" {
			return fmt.Errorf("entries[%d]: key is empty", i)
		}
	}
	return nil
}

func checkNumbers(d *envoy.RateLimitDescriptor) error {
	if hits := d.GetHitsAddend().GetValue(); hits > weir.MaxCount {
		return fmt.Errorf("hits_addend is %d, want at most %d", hits, int64(weir.MaxCount))
	}
	if d.Limit != nil && unitPeriods[d.Limit.GetUnit()] == 0 {
		return fmt.Errorf("limit: unit is %v, want SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", d.Limit.GetUnit())
	}
	return nil
}

// HitsOf returns the hits of a descriptor.
func HitsOf(r *service.RateLimitRequest, d *envoy.RateLimitDescriptor) int64 {
	if d.HitsAddend != nil {
		return int64(d.HitsAddend.Value)
	}
	return max(1, int64(r.HitsAddend))
}
