package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Row is the limits of a rule, which decide at once on the words of one entry.
type Row struct {
	Owner  any // for the caller
	in     *Table
	limits []*Limit
}

// MaxLimits is the largest number of limits of a Row.
const MaxLimits = 4

// NewRow returns the row of limits, or nil if they are too many or not of one table.
func NewRow(limits []*Limit) *Row {
	if len(limits) > MaxLimits {
		return nil
	}
	for _, l := range limits {
		if l == nil || l.in != limits[0].in || !l.numbered {
			return nil
		}
	}
	return newRow(limits[0].in, limits)
}

func newRow(in *Table, limits []*Limit) *Row { return &Row{in: in, limits: limits} }

// Ask is a cost of a key under the limits of a row.
type Ask struct {
	Row  *Row
	Key  table.Hash
	Cost int64
}

// loans counts the loans of the key's shard.
func (q *Ask) loans() *atomic.Uint64 { return &q.Row.in.loans[q.Key%table.Shards] }

// mostTries bounds how often a decision begins again, by the number of its asks. Callers of the same keys in another order can
// keep each other from seizing all entries, as long as they keep in step.
const mostTries = 64

// Decide takes asks at once, or none, and writes the answer to a, which must be zero. A peek writes nothing, and its answer is
// that of algorithm.Peek. Binding is the index of a limit among those of all asks. done is false if the decision needs
// the lock, for example with two asks for one key.
//
// It decides on words that it reads without seizing them, like takePair.
func Decide(asks []Ask, now int64, peeks bool, a *algorithm.Answer) (done bool) {
	limits := 0
	for i := range asks {
		if limits += len(asks[i].Row.limits); asks[i].isAmong(asks[:i]) {
			return false
		}
	}
	d := decision{peeks: peeks}
	switch {
	case limits <= 2: // most need little space, which is cleared
		var entries [2]seen
		var parts [2]part
		d.seen, d.parts = entries[:len(asks)], parts[:limits]
	case limits <= MaxLimits:
		var entries [MaxLimits]seen
		var parts [MaxLimits]part
		d.seen, d.parts = entries[:len(asks)], parts[:limits]
	default:
		d.seen, d.parts = make([]seen, len(asks)), make([]part, limits)
	}
	for range max(mostTries/len(asks), 2) {
		if result := d.try(asks, now, a); result != moved {
			return result == decided
		}
		*a = algorithm.Answer{}
		clear(d.parts)
		d.entries, d.count, d.refused = 0, 0, false
	}
	return false
}

func (q *Ask) isAmong(asks []Ask) bool {
	for i := range asks {
		if asks[i].Key == q.Key && asks[i].Row.in == q.Row.in {
			return true
		}
	}
	return false
}

// try decides once. The answer means something only if the result is decided.
func (d *decision) try(asks []Ask, now int64, a *algorithm.Answer) result {
	for i := range asks {
		q := &asks[i]
		e := q.Row.in.Claim(q.Key, now)
		if e.None() {
			return slow
		}
		if result := d.look(q, e, now); result != decided {
			return result
		}
	}
	return d.finish(asks, now, a)
}
