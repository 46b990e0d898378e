package redislimit

import (
	"fmt"

	"github.com/weirflow/weir"
)

// A call of the script keeps every other caller of the server waiting, so it is bounded by the time that it may need: 2
// ms on the machine of docs/redis.md. The unit of work is 2 µs.
const (
	mostWork  = 1000
	heavyWork = 16 // from here on, work is mostly the reading of the state

	// mostExtra is the number of entries that a log or a gate may have above its limit before it refuses a record.
	mostExtra = 512
	// mostKept is the number of units above its limit that a log keeps when it begins to count denied attempts.
	mostKept = 1 << 16

	longBytes = 4096 // from here on, the script reads only some entries of a log, if those decide
)

// work returns the most work of a decision about a state of the limit. The script reads states whole.
func (l *limit) work() int {
	entry, extra := int64(10), int64(mostExtra) // bytes, unless costs are above 2^31: see glance.lua
	switch {
	case l.kind.fixed():
		return 1
	case l.kind == kindSlots:
		entry, extra = 24, 0
	}
	bytes := (l.capacity + extra) * entry * 3 / 2 // some entries that have expired stay for a while
	return int(2 + bytes/1536)
}

// checkWork refuses a rule of which one decision would read more entries than a call may.
func (c *compiled) checkWork(r *weir.Rule) error {
	total := 0
	for i := range c.limits {
		l := &c.limits[i]
		if !l.kind.measured() {
			continue
		}
		if total += l.weight; total > mostWork {
			b := bounds{text: r.Limits()[i].String()}
			b.refuse("value", fmt.Sprintf("brings the rule's logs and slots to %d KB, above %d", total*3/2, mostWork*3/2))
			return b.problems[0]
		}
	}
	return nil
}

// workload is the work of the decisions of a call. A state is read once.
type workload struct {
	total int
	read  map[string]bool // the keys of heavy states
}

func (w *workload) add(d *decision) {
	for i := range d.parts {
		p := &d.parts[i]
		work := p.limit.weight
		if work >= heavyWork {
			if w.read[p.key] {
				work = heavyWork
			} else {
				if w.read == nil {
					w.read = map[string]bool{}
				}
				w.read[p.key] = true
			}
		}
		w.total += work
	}
}

// tooMuch refuses a decision that would read more entries than a call may.
func tooMuch(o op, parts []part) error {
	total := 0
	for i := range parts {
		if l := parts[i].limit; l.kind.measured() {
			total += l.weight
		}
	}
	if total <= mostWork {
		return nil
	}
	return &weir.RequestError{Op: o.String(), Field: "requests", Reason: fmt.Sprintf("need logs and slots of up to %d KB at once, above %d (Redis)", total*3/2, mostWork*3/2)}
}
