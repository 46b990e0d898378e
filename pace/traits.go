package pace

import (
	"cmp"
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// traits are the facts of a rule that a queue needs.
type traits struct {
	capacity int64         // the smallest of any limit
	lease    time.Duration // the shortest of any limit; 0 without one
	unit     time.Duration // the time that one unit takes
	most     int           // instants of one booking
}

// traitsOf returns the traits of a rule, which keeps them.
func traitsOf(r *weir.Rule) *traits { return enginekit.Keep(r, newTraits) }

// newTraits works out the traits of a rule. One booking of a cycle takes half the permits, so that other processes have some.
func newTraits(r *weir.Rule) *traits {
	t := &traits{capacity: math.MaxInt64, most: mostTogether}
	for _, l := range r.Limits() {
		d := weir.Describe(l)
		t.capacity = min(t.capacity, d.Capacity)
		t.lease = min(cmp.Or(t.lease, d.Lease), cmp.Or(d.Lease, t.lease))
		if d.Rate.Count > 0 {
			t.unit = max(t.unit, d.Rate.Period/time.Duration(d.Rate.Count))
		}
		if cycle := d.Refill == weir.RefillWindow; cycle {
			t.most = min(t.most, int(max(min(d.Rate.Count/2, mostTogether), 1)))
		}
	}
	return t
}
