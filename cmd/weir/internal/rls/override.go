package rls

import (
	"strings"
	"sync"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	kinds "github.com/envoyproxy/go-control-plane/envoy/type/v3"

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

// maxOverrides bounds the remembered limits of calls. Further ones are made for each call.
const maxOverrides = 1024

// overrides are the rules of limits that calls bring themselves.
type overrides struct {
	check func(rules ...*weir.Rule) error // of the engine
	mu    sync.RWMutex
	rules map[override]*ruled
}

// ruled is a limit in a call, ready to decide.
type ruled struct {
	rule   *weir.Rule
	shown  *shown
	window *envoyproxy.Limit // as envoyproxy/ratelimit decides; nil of a bucket
}

// override is a limit in a call.
type override struct {
	count   uint32
	unit    kinds.RateLimitUnit
	counted bool // in windows, as envoyproxy/ratelimit does, instead of a token bucket
}

// overrideRule begins the names of the rules of limits in calls. The limits of one unit share the states of keys, so that
// a changed count keeps what a key has used.
const overrideRule = "envoy:call:"

// of returns the rule of a limit in a call.
func (o *overrides) of(l *envoy.RateLimitDescriptor_RateLimitOverride, counted bool) (*ruled, error) {
	k := override{l.GetRequestsPerUnit(), l.GetUnit(), counted}
	o.mu.RLock()
	known := o.rules[k]
	o.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	made, err := k.rule(o.check)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rules == nil {
		o.rules = map[override]*ruled{}
	}
	if len(o.rules) < maxOverrides {
		o.rules[k] = made
	}
	return made, nil
}

// rule makes the rule of a limit.
func (k override) rule(check func(...*weir.Rule) error) (*ruled, error) {
	rate := weir.Rate{Count: int64(k.count), Period: unitPeriods[k.unit]}
	name := overrideRule + strings.ToLower(k.unit.String())
	if k.counted {
		return countedRule(name, rate, k, check)
	}
	limit := weir.Limit(weir.TokenBucket{Rate: rate, Burst: rate.Count})
	if k.count == 0 {
		limit = weir.DenyAll{}
	}
	bucket, err := weir.NewRule(name, limit)
	if err == nil {
		err = check(bucket)
	}
	if err != nil {
		return nil, err
	}
	return &ruled{rule: bucket, shown: newShown(bucket)}, nil
}

// countedRule makes the rule of a limit as the files of envoyproxy/ratelimit have it.
func countedRule(name string, rate weir.Rate, k override, check func(...*weir.Rule) error) (*ruled, error) {
	l := &envoyproxy.Limit{Shown: &service.RateLimitResponse_RateLimit{RequestsPerUnit: k.count, Unit: service.RateLimitResponse_RateLimit_Unit(k.unit)}}
	if err := l.Windows(name, rate, func(r *weir.Rule) error { return check(r) }); err != nil {
		return nil, err
	}
	return &ruled{l.Rule, newShown(l.Rule), l}, nil
}

// overrideKey joins the domain and the entries of a descriptor, so that different ones make different keys.
func overrideKey(domain string, d *envoy.RateLimitDescriptor) string {
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
