package redislimit

import (
	"fmt"

	"github.com/weirflow/weir"
)

// A call of the script keeps every other caller of the server waiting, so it is bounded by the time that it may need: 2
// ms on the machine of docs/redis.md. Here the states that it reads are counted, by the size that they can have. The unit
// of work is 2 µs.
const (
	mostWork  = 1000
	mostHeavy = 660 // of heavy states, because a decision on one may also have to copy it
	heavyWork = 16  // from here on, work is mostly the reading of the state
	lineWork  = 8   // of a line
	laterWork = 8   // of a further decision on a state that has been read

	// mostExtra is the number of entries that a log or a gate may have above its limit before it refuses a record.
	mostExtra = 512
	// mostKept is the number of units above its limit that a log keeps when it begins to count denied attempts.
	mostKept = 1 << 16

	// The script counts the entries that it lists, makes or moves one by one; each takes 0.2 µs. It stops after a
	// decision that brings the count above mostListed, and leaves the rest of the call to another one. A decision alone
	// lists at most the leases of a Concurrency, twice. Of logs it moves at most mostMoved entries to undo a take or to
	// give units back to a gate, and gives a log with more than mostLoosened entries no other form.
	mostListed   = 1000
	mostMoved    = 1000
	mostLoosened = 512
	mostSmall    = 2048 // the largest count whose entries have instants of 4 bytes, which have to be moved now and then

	longBytes = 4096 // from here on, the script reads only some entries of a log, if those decide
)

// work returns the most work of a decision about a state of the limit. The script reads states whole.
func (l *limit) work() int {
	entry, extra := int64(10), int64(mostExtra) // bytes, unless costs are above 2^31: see logs.lua
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
	heavy int             // that of heavy states
	read  map[string]bool // the keys of heavy states
}

func (w *workload) add(d *decision) {
	if d.line != nil && d.line.header != nil {
		w.total += lineWork * len(d.line.header.keys)
	}
	for i := range d.parts {
		p := &d.parts[i]
		work := p.limit.weight
		if work >= heavyWork {
			if w.read[p.key] {
				work = laterWork
			} else {
				if w.read == nil {
					w.read = map[string]bool{}
				}
				w.read[p.key] = true
				w.heavy += work
			}
		}
		w.total += work
	}
}

// full reports whether the work is more than a call may have.
func (w *workload) full() bool { return w.total > mostWork || w.heavy > mostHeavy }

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
