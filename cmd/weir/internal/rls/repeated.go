package rls

import (
	"slices"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// mostReadings bounds the ways to read a descriptor with repeated keys, one value of each. One with more is refused.
const mostReadings = 64

// denyRepeated refuses a descriptor with repeated keys if a rule denies it by any of their values: servers may read another one than
// the first. An error would let Envoy admit the request.
func (c *call) denyRepeated(hits int64) {
	keys, values := repeated(c.source.entries)
	if len(keys) == 0 {
		return
	}
	readings := 1
	for _, key := range keys {
		if readings *= len(values[key]); readings > mostReadings {
			c.outcome.Verdict, c.outcome.Reason, c.outcome.Rule = rules.Refuse, rules.ByTooMany, nil
			return
		}
	}
	c.source.chosen = make(map[string]string, len(keys))
	var other rules.Outcome
	for i := range readings {
		for _, key := range keys {
			of := values[key]
			c.source.chosen[key], i = of[i%len(of)], i/len(of)
		}
		if c.in.config.Decide(&c.source, hits, &other); other.Verdict == rules.Refuse && other.Rule != nil && other.Rule.Deny {
			c.outcome.Verdict, c.outcome.Reason, c.outcome.Rule = other.Verdict, other.Reason, other.Rule
			break
		}
	}
	c.source.chosen = nil
}

// repeated returns the keys with several values, and the values of each.
func repeated(entries []*envoy.RateLimitDescriptor_Entry) (keys []string, values map[string][]string) {
	values = map[string][]string{}
	for _, e := range entries {
		of := values[e.Key]
		if slices.Contains(of, e.Value) || len(of) > mostReadings {
			continue
		}
		if values[e.Key] = append(of, e.Value); len(of) == 1 {
			keys = append(keys, e.Key)
		}
	}
	return keys, values
}
