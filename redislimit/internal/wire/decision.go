package wire

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// Decision is one decision of the script and its answer.
type Decision struct {
	Err      error // of this decision only
	Op       Op
	Admitted bool
	Again    bool // the answer is the first one to its identity, not the first time
	Late     bool // an undo or withdrawal of the engine: the caller has gone

	Parts    []Part
	Now      int64     // us; for an undo, when the undone take was written
	Sent     time.Time // when the call left; for an undo, that of the undone take
	Identity string    // the key of its identity; empty without one
	Final    bool      // the identity names a refusal, too

	First Op    // for the identity of a take that only peeks, because its limit has become too small: opTake or opUpTo
	Most  int64 // for the identity of an opUpTo, the most times that its caller asked for; 0 if times says it
	Times int64 // for an opUpTo, the most times to take the costs; once answered, the times taken

	Longest int64   // us; for an opBook
	Due     int64   // us; the instant of a booking
	Space   float64 // us; when all limits have space for the booking

	elsewhere int64 // us; where the script wanted the boundaries of a quota
	tries     int   // how often it did
}

// Part is one limit of one key.
type Part struct {
	Limit   *stored.Limit
	Key     string // in Redis
	Cost    int64
	Lane    int
	Request int  // index of its request
	Joins   bool // an earlier part of the decision has the same value in Redis
	Lease   uint64
	Spared  bool  // for a ban: no refusal counts, because the caller waits
	wrote   int64 // us; when an admitted take was written
	Measure enginekit.Measure
	Stored  [6]float64 // the numbers of the state before the decision
	past    *past      // describes the decision that an undo or a withdrawal reverses; nil without an answer
}

// past describes, for a decision that gives units back, the one that took them.
type past struct {
	left stored.Span // for the undo of a leaky bucket: TAT after the take
	told float64     // and the newest release before it

	// for opWithdraw: numbers of the state after the booking, and of the one to restore
	bookedTo [3]float64
	restored [5]float64
}

// unknownPast is that of a take without an answer.
var unknownPast past

// groups returns the number of values that the decision reads.
func (d *Decision) groups() (n int) {
	for i := range d.Parts {
		if !d.Parts[i].Joins {
			n++
		}
	}
	return n
}

// shared returns the number of parts that have the value of part i, which is the first of them.
func (d *Decision) shared(i int) int {
	n := 1
	if p := &d.Parts[i]; p.Limit.Fixed {
		for i++; i < len(d.Parts) && d.Parts[i].Request == p.Request; i++ {
			if d.Parts[i].Joins {
				n++
			}
		}
	}
	return n
}

// repeats reports whether the decision differs from an earlier one of the same operation only in its key. Both have
// one value.
func (d *Decision) repeats(before *Decision) bool {
	if len(d.Parts) != len(before.Parts) || d.tries+before.tries > 0 {
		return false
	}
	for i := range d.Parts {
		if p, q := &d.Parts[i], &before.Parts[i]; p.Limit != q.Limit || p.Cost != q.Cost {
			return false
		}
	}
	return true
}

// Spent returns the time until all states are fresh again if they are empty now.
func (d *Decision) Spent() (most float64) {
	for i := range d.Parts {
		most = max(most, d.Parts[i].Limit.Spent())
	}
	return most
}

// age returns the time in us since the undone take left, by the clock of this process. An engine with a clock of its own
// has no use for it.
func (d *Decision) age() float64 {
	if d.Sent.IsZero() {
		return 0
	}
	return math.Ceil(float64(time.Since(d.Sent)) / float64(time.Microsecond))
}

// past returns how long ago the undone take was sent, or the booked instant of a withdrawal was, at least. It returns -1 if
// the caller settles the take or cancels the booking.
func (d *Decision) past() float64 {
	switch {
	case !d.Late:
		return -1
	case d.Op == OpUndo:
		return d.age()
	}
	return max(d.age()-float64(d.Due-d.Now), 0)
}

// Count is how many times an admitted decision took its costs.
func (d *Decision) Count() int64 { return max(d.Times, 1) }

// Repeated returns the parts of an answered decision at another number of times
// their cost.
func (d *Decision) Repeated(times int64) []Part {
	parts := slices.Clone(d.Parts)
	for i := range parts {
		parts[i].Cost = parts[i].Cost / d.Count() * times
	}
	return parts
}

// fingerprint tells decisions with one identity apart, so that a caller that uses an identity for two different
// decisions gets two answers.
func (d *Decision) fingerprint() string {
	h := fnv.New64a()
	var number [8]byte
	add := func(n uint64) {
		binary.LittleEndian.PutUint64(number[:], n)
		_, _ = h.Write(number[:])
	}
	add(uint64(cmp.Or(d.First, d.Op)))
	add(uint64(cmp.Or(d.Most, d.Times)))
	for i := range d.Parts {
		p := &d.Parts[i]
		_, _ = h.Write([]byte(p.Key))
		_, _ = h.Write([]byte(p.Limit.Identity))
		add(uint64(p.Cost))
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// IsHeld reports whether the part is slots under an identity.
func (p *Part) IsHeld() bool { return p.Limit.Kind == stored.KindSlots && p.Lease != 0 && p.Cost > 0 }

// Divisible reports whether deciding each key of the decision on its own gives the same answer.
func (d *Decision) Divisible() bool {
	switch {
	case d.Identity != "":
		return false
	case d.Op == OpRecord:
		return !slices.ContainsFunc(d.Parts, func(p Part) bool {
			return p.Limit.Kind != stored.KindBan && (p.Limit.Kind != stored.KindSlots || p.Cost >= 0 || p.Lease == 0)
		})
	}
	return d.Op == OpPeek || d.Op == OpReset || d.Op == OpUndo
}
