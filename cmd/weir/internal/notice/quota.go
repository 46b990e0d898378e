package notice

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// thresholds are the percentages of a limit that are reported.
var thresholds = [...]int64{80, 95, 100}

// shortest is the length of the shortest window with thresholds. Nobody could act within a shorter one.
const shortest = time.Hour

// quota is a limit with thresholds: one whose units come back when a window ends, or a window after they were taken.
type quota struct {
	at     int // among the limits of its rule
	text   string
	window time.Duration // of the life of a mark; 0 until the present window ends
	alone  *weir.Rule    // the limit by itself, on the states of the rule
}

// quotas are those of a rule.
type quotas struct {
	list []quota
	all  int // limits of the rule
}

// quotasOf makes the quotas once for each rule.
func quotasOf(r *weir.Rule) *quotas {
	return enginekit.Keep(r, func(r *weir.Rule) *quotas {
		limits, states := r.Limits(), enginekit.StateNames(r)
		found := &quotas{all: len(limits)}
		for i, limit := range limits {
			lasts, ok := windowOf(limit)
			if !ok {
				continue
			}
			alone, err := weir.NewRule(r.Name(), limit)
			if err != nil || enginekit.StateNames(alone)[0] != states[i] { // the second limit of one kind and period
				continue
			}
			found.list = append(found.list, quota{i, limit.String(), lasts, alone})
		}
		return found
	})
}

// windowOf reports whether a limit has thresholds, and for how long a mark lasts.
func windowOf(limit weir.Limit) (lasts time.Duration, ok bool) {
	d := weir.Describe(limit)
	switch {
	case d.Capacity < 1 || d.Capacity >= weir.MaxCount:
		return 0, false
	case d.Calendar != 0:
		return 0, true
	case d.Window < shortest:
		return 0, false
	case d.Refill == weir.RefillWindow && d.Reset <= d.Window: // all at once
		return 0, true
	case d.Refill == weir.RefillWindow || d.Refill == weir.RefillEach:
		return d.Window, true
	}
	return 0, false
}

// Has reports whether a rule has a limit with thresholds.
func Has(r *weir.Rule) bool { return len(quotasOf(r).list) > 0 }

// reached reports whether used units are a percentage of a limit at least.
func reached(used, limit, percent int64) bool { return used >= unitsAt(limit, percent) }

// unitsAt returns the least units that are a percentage of a limit.
func unitsAt(limit, percent int64) int64 { return limit/100*percent + (limit%100*percent+99)/100 }

// usedOf returns the units that a decision on one limit leaves used.
func usedOf(d *weir.Decision) int64 { return max(d.Limit-d.Remaining, 0) }
