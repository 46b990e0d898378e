package envoyproxy

import (
	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// maxNesting bounds descriptors within descriptors, as files are bounded.
const maxNesting = 64

// resource reads a resource of a control plane, which says what a file says.
func (r *reader) resource(name string, c *pb.RateLimitConfig) {
	at := rules.Whole(name, r.problems)
	if into := r.domain(name, c.Domain, at); into != nil {
		r.pushed(into, c.Domain, at, c.Descriptors, 1)
		r.noteEmpty(into, c.Domain, at)
	}
}

// pushed reads a list of descriptors into a level.
func (r *reader) pushed(into *level, path string, at rules.Value, list []*pb.RateLimitDescriptor, depth int) {
	if depth > maxNesting {
		at.Fail("is nested too deeply")
		return
	}
	for _, d := range list {
		here := at.In(joined(d.GetKey(), d.GetValue()))
		l, set := &draft{Limit: &Limit{}}, places{}
		l.Shadow, l.Quota, l.Detailed = set.on("shadow_mode", d.GetShadowMode(), here), set.on("quota_mode", d.GetQuotaMode(), here), set.on("detailed_metric", d.GetDetailedMetric(), here)
		if d.RateLimit != nil {
			r.policy(l, d.RateLimit, here)
		}
		g := given{descriptor: &descriptor{pair: pair{d.GetKey(), d.GetValue()}}, limit: l, set: set, at: here}
		if below := d.Descriptors; len(below) > 0 {
			g.below = func(into *level, path string) { r.pushed(into, path, at, below, depth+1) }
		}
		r.put(into, path, g)
	}
}

// on keeps the place of a flag that is on.
func (p places) on(key string, on bool, at rules.Value) bool {
	if on {
		p[key] = at
	}
	return on
}

// policy reads the limit of a descriptor. A number that is not given is 0 here, so its absence says nothing.
func (r *reader) policy(l *draft, p *pb.RateLimitPolicy, at rules.Value) {
	l.given, l.at, l.Name, l.Unlimited, l.count, l.unit = true, at, p.Name, p.Unlimited, int64(p.RequestsPerUnit), p.Unit.String()
	if !p.Unlimited || p.RequestsPerUnit > 0 {
		l.limitAt = at
	}
	for _, other := range p.Replaces {
		l.Replaces, r.replaced = append(l.Replaces, other.GetName()), append(r.replaced, named{other.GetName(), at})
		switch other.GetName() {
		case "":
			at.Fail("replaces has no name")
		case p.Name:
			at.Fail("replaces names the limit itself")
		}
	}
}
