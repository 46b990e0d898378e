package stored

import (
	"fmt"

	"github.com/weirflow/weir"
)

// A call of the script keeps every other caller of the server waiting, so it is bounded by the time that it may need: 2
// ms on the machine of docs/develop/redis.md. Here the states that it reads are counted, by the size that they can have. The unit
// of work is 2 µs.
const (
	MostWork  = 1000
	MostHeavy = 660 // work of heavy states, because a decision on one may also have to copy it
	HeavyWork = 16  // from here on, work is mostly the reading of the state
	LaterWork = 8   // work of a further decision on a state that has been read

	// MostExtra is the number of entries that a log or a gate may have above its limit before it refuses a record.
	MostExtra = 512
	// MostKept is the number of units above its limit that a log keeps when it begins to count denied attempts.
	MostKept = 1 << 16

	// The script counts the entries that it lists, makes or moves one by one; each takes 0.2 µs. It stops after a
	// decision that brings the count above mostListed, and leaves the rest of the call to another one. A decision alone
	// lists at most the leases of a Concurrency, twice. Of logs it moves at most mostMoved entries to undo a take or to
	// give units back to a gate, and gives a log with more than mostLoosened entries no other form.
	MostListed   = 1000
	MostMoved    = 1000
	MostLoosened = 512
	MostSmall    = 2048 // the largest count whose entries have instants of 4 bytes, which have to be moved now and then

	LongBytes = 4096 // from here on, the script reads only some entries of a log, if those decide
)

// work returns the most work of a decision about a state of the limit. The script reads states whole.
func (l *Limit) work() int {
	entry, extra := int64(10), int64(MostExtra) // bytes, unless costs are above 2^31: see logs.lua
	switch {
	case l.Fixed:
		return 1
	case l.Kind == KindBan:
		return 2
	case l.Kind == KindSlots:
		entry, extra = 24, 0
	}
	bytes := (l.Capacity + extra) * entry * 3 / 2 // some entries that have expired stay for a while
	return int(2 + bytes/1536)
}

// checkWork refuses a rule if one decision on it would read more entries than a call may.
func checkWork(r *weir.Rule, limits []Limit) error {
	total := 0
	for i := range limits {
		l := &limits[i]
		if l.Fixed {
			continue
		}
		if total += l.Weight; total > MostWork {
			b := bounds{text: r.Limits()[i].String()}
			b.refuse("value", fmt.Sprintf("brings the rule's logs and slots to %d KB, above %d", total*3/2, MostWork*3/2))
			return b.problems[0]
		}
	}
	return nil
}
