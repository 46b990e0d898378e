package layer

import (
	"math"
	"slices"

	"github.com/weirflow/weir"
)

// takenAside is when the units of reservations were taken aside, by their leases. A settlement aside undoes the take aside, not
// that of the enforced rule: another limit may have refused it, and other units count.
type takenAside map[uint64]map[asideKey]int64

type asideKey struct{ rule, key string }

// note keeps what an admitted take with a lease has taken. At the bound it forgets another one, which then gets nothing back.
func (t takenAside) note(c *weir.Call, r weir.Result) {
	if c.Lease == 0 || !r.Decision.Allowed {
		return
	}
	if len(t) >= MostAside {
		for lease := range t {
			delete(t, lease)
			break
		}
	}
	taken := make(map[asideKey]int64, len(c.Requests))
	for i, q := range c.Requests {
		at := int64(math.MinInt64) // unknown: before all windows and entries
		if i < len(r.Taken) {
			at = r.Taken[i]
		}
		taken[asideKey{q.Rule.Name(), q.Key}] = at
	}
	t[c.Lease] = taken
}

// undo turns the settlement of a reservation into the undo of its take aside, and reports whether there is something to undo.
func (t takenAside) undo(c *weir.Call) bool {
	taken := t[c.Lease]
	delete(t, c.Lease)
	c.Taken = nil
	c.Requests = slices.DeleteFunc(c.Requests, func(q weir.Request) bool {
		at, ok := taken[asideKey{q.Rule.Name(), q.Key}]
		if ok {
			c.Taken = append(c.Taken, at)
		}
		return !ok
	})
	return len(c.Requests) > 0
}
