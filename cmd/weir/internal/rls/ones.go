package rls

import (
	"log/slog"
	"sync/atomic"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// manyOnes is how many costs of one hit a rule that charges after the work may have before the log warns.
const manyOnes = 100

// ones notices a rule that charges after the work and never gets a cost: Envoy ignores hits_addend under route, and
// then each call has one hit at any cost. It is safe for concurrent use.
type ones struct {
	log  *slog.Logger
	seen map[string]*atomic.Int64 // costs of one hit by rule, or a negative number once there was another one
}

// newOnes returns one for these rules. A candidate gets the costs of its rule, which are noted once.
func newOnes(log *slog.Logger, config *rules.Config) ones {
	o := ones{log, map[string]*atomic.Int64{}}
	for _, r := range config.Rules {
		o.seen[r.Name] = new(atomic.Int64)
	}
	return o
}

// note notes the cost of a descriptor that takes hits.
func (o ones) note(outcome *rules.Outcome, hits int64) {
	for i, q := range outcome.Requests {
		if q.Rule.ChargesAfter() {
			o.noteOne(outcome.Rules[i].Name, hits)
		}
	}
	for i, q := range outcome.Beside {
		if r := outcome.BesideRules[i]; r.Shadow && q.Rule.ChargesAfter() {
			o.noteOne(r.Name, hits)
		}
	}
}

func (o ones) noteOne(rule string, hits int64) {
	seen := o.seen[rule]
	if seen.Load() < 0 {
		return
	}
	if hits != 1 {
		seen.Store(-1 << 62)
	} else if seen.Add(1) == manyOnes {
		o.log.Warn("the rule charges after the work, and all of its costs were one hit; Envoy reads hits_addend only under typed_per_filter_config, not under route",
			"rule", rule, "costs", manyOnes)
	}
}
