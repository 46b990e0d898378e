package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Row is the limits of a rule, which decide at once on the words of one entry.
type Row struct {
	in     *Table
	limits []*Limit
}

// MaxLimits is the largest number of limits of a Row, and of all asks of a Take.
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

func newRow(in *Table, limits []*Limit) *Row { return &Row{in, limits} }

// Ask is a cost of a key under the limits of a row.
type Ask struct {
	Row  *Row
	Key  table.Hash
	Cost int64
}

// loans counts the loans of the key's shard.
func (q *Ask) loans() *atomic.Uint64 { return &q.Row.in.loans[q.Key%table.Shards] }

// mostTries bounds how often a Take begins again. Callers of the same keys in another order can keep each other from holding
// all entries, as long as they keep in step.
const mostTries = 64

// Take decides on asks for different keys at once, and writes the answer to a, which must be zero. Nothing is written unless
// all limits admit. Binding is the index of a limit among those of all asks. done is false if the decision needs the lock.
//
// It decides on words that it reads without a hold, like takePair.
func Take(asks []Ask, now int64, a *algorithm.Answer) (done bool) {
	for range mostTries {
		if result := takeOnce(asks, now, a); result != moved {
			return result == decided
		}
		*a = algorithm.Answer{}
	}
	return false
}

func takeOnce(asks []Ask, now int64, a *algorithm.Answer) result {
	var d decision
	for i := range asks {
		e, ok := asks[i].Row.claim(asks[i].Key, now)
		if !ok {
			return slow
		}
		if result := d.look(&asks[i], e, now); result != decided {
			return result
		}
	}
	return d.finish(asks, now, a)
}

// claim returns the entry of h, with a span for each limit. ok is false if there is no room for it.
func (r *Row) claim(h table.Hash, now int64) (e table.Entry, ok bool) {
	for {
		if e = r.in.Claim(h, now); e.None() {
			return e, false
		}
		if r.fits(e) {
			return e, true
		}
		r.in.Upgrade(h, now)
	}
}

func (r *Row) fits(e table.Entry) bool {
	in := r.in.layoutOf(e)
	for _, l := range r.limits {
		if _, ok := l.spanIn(in); !ok {
			return false
		}
	}
	return true
}
