package rls

import (
	"strings"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	kinds "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/front"
)

// unitPeriods are the lengths of the units of limits in calls.
var unitPeriods = map[kinds.RateLimitUnit]time.Duration{
	kinds.RateLimitUnit_SECOND: time.Second,
	kinds.RateLimitUnit_MINUTE: time.Minute,
	kinds.RateLimitUnit_HOUR:   time.Hour,
	kinds.RateLimitUnit_DAY:    day,
	kinds.RateLimitUnit_MONTH:  30 * day,
	kinds.RateLimitUnit_YEAR:   365 * day,
}

const day = 24 * time.Hour

// ruled is the limit of a descriptor, ready to decide.
type ruled struct {
	rule   *weir.Rule
	shown  *shown
	window *envoyproxy.Limit // as envoyproxy/ratelimit decides; nil of a bucket
}

// ownLimit is the limit that a descriptor brings. Envoy calls it an override.
type ownLimit struct {
	count   uint32
	unit    kinds.RateLimitUnit
	counted bool // in windows, as envoyproxy/ratelimit does, instead of a token bucket
}

// ownRule begins the names of the rules of such limits. The limits of one unit share the states of keys, so that a changed
// count keeps what a key has used.
const ownRule = "envoy:call:"

// own returns the rule of the limit of a descriptor.
func (s *Server) own(l *envoy.RateLimitDescriptor_RateLimitOverride, counted bool) (*ruled, error) {
	made, err := s.ownLimits.Of(ownLimit{l.GetRequestsPerUnit(), l.GetUnit(), counted}, s.newOwn)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "rls: limit: %v", err)
	}
	return made, nil
}

func (s *Server) newOwn(of ownLimit) (*ruled, error) {
	rate := weir.Rate{Count: int64(of.count), Period: unitPeriods[of.unit]}
	name := ownRule + strings.ToLower(of.unit.String())
	if of.counted {
		l := &envoyproxy.Limit{Shown: &service.RateLimitResponse_RateLimit{RequestsPerUnit: of.count, Unit: service.RateLimitResponse_RateLimit_Unit(of.unit)}}
		if err := l.Windows(name, rate, s.Desk.NewRule); err != nil {
			return nil, err
		}
		return &ruled{l.Rule, newShown(l.Rule), l}, nil
	}
	limit := weir.Limit(weir.TokenBucket{Rate: rate, Burst: rate.Count})
	if of.count == 0 {
		limit = weir.DenyAll{}
	}
	bucket, err := s.Desk.NewRule(name, limit)
	if err != nil {
		return nil, err
	}
	return &ruled{rule: bucket, shown: newShown(bucket)}, nil
}

// ownKey joins the domain and the entries of a descriptor, so that different ones make different keys.
func ownKey(domain string, d *envoy.RateLimitDescriptor) string {
	var b strings.Builder
	_, _ = escaper.WriteString(&b, domain)
	for _, e := range d.Entries {
		b.WriteByte('|')
		_, _ = escaper.WriteString(&b, e.Key)
		b.WriteByte('=')
		_, _ = escaper.WriteString(&b, e.Value)
	}
	return front.BoundedKey(b.String())
}

var escaper = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `=`, `\=`)
