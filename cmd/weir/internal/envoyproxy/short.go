package envoyproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
)

// The bounds of names that people see.
const (
	mostShort   = 64
	mostSegment = 40
	hashOfShort = 6
)

// route is the name that Envoy Gateway gives to a route: its kind, namespace, name and rule, and the match and the host.
var route = regexp.MustCompile(`^[a-z]+route/[^/]+/([^/]+/rule/\d+)/match/`)

// shortNames returns the names that people see, by the paths of limits. A limit of Envoy Gateway is named by its route and
// its rule: backend/rule/0.rule-0-match-0. Limits that would share a name, or have a name that is taken, end in a hash of
// their path, so that a name does not depend on the order.
func shortNames(all []*resource, taken map[string]bool) map[string]string {
	short, times := map[string]string{}, map[string]int{}
	var walk func(domain, path string, above []string, list []*pb.RateLimitDescriptor)
	walk = func(domain, path string, above []string, list []*pb.RateLimitDescriptor) {
		for _, d := range list {
			here, names := path+"."+joined(d.GetKey(), d.GetValue()), append(above[:len(above):len(above)], segment(d))
			if _, known := short[here]; d.RateLimit != nil && !known {
				short[here] = shortName(domain, names)
				times[short[here]]++
			}
			if len(names) < maxNesting {
				walk(domain, here, names, d.Descriptors)
			}
		}
	}
	for _, r := range all {
		walk(r.content.Domain, r.content.Domain, nil, r.content.Descriptors)
	}
	for path, name := range short {
		if times[name] > 1 || taken[name] || len(name) > mostShort {
			sum := sha256.Sum256([]byte(path))
			short[path] = strings.ToValidUTF8(name[:min(len(name), mostShort-hashOfShort-1)], "") + "#" + hex.EncodeToString(sum[:hashOfShort/2])
		}
	}
	return short
}

// segment is the part of a name that a descriptor adds. Envoy Gateway repeats a key as its value.
func segment(d *pb.RateLimitDescriptor) string {
	text := joined(d.GetKey(), d.GetValue())
	if d.GetKey() == d.GetValue() {
		text = d.GetKey()
	}
	if parts := route.FindStringSubmatch(text); parts != nil {
		return parts[1]
	}
	if from := len(text) - mostSegment; from > 0 {
		text = strings.ToValidUTF8(text[from:], "")
	}
	return unnameable.Replace(text)
}

// shortName joins segments. The domain is left out where they say it, or the route.
func shortName(domain string, segments []string) string {
	name := strings.Join(segments, ".")
	if strings.HasPrefix(name, domain+"/") || strings.Contains(segments[0], "/rule/") {
		return name
	}
	return unnameable.Replace(domain) + "." + name
}
