package word

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// twoKeys are rows of a limit of one word and of a rule of some limits, in two tables, with the given bursts.
func twoKeys(now, one, other int64, limitsOfOther int) (rows [2]*Row) {
	for i, burst := range []int64{one, other} {
		in := NewTable(0)
		var limits []*Limit
		for range []int{1, limitsOfOther}[i] {
			like := algorithm.NewTokenBucket(1, 100e9, burst) // all units together take three years, which fit in words
			limits = append(limits, in.AddColumn(like, now).Limit(like))
		}
		rows[i] = NewRow(limits)
	}
	return rows
}

func TestTakeAllTakesFromEveryKeyOrNone(t *testing.T) {
	const now = 1_700_000_000_000_000_000
	for limits := 1; limits <= 2; limits++ {
		rows := twoKeys(now, 5, 3, limits)
		for i, want := range []bool{true, true, true, false, false} {
			var a algorithm.Answer
			if done := TakeAll([]Ask{{rows[0], 77, 1}, {rows[1], 78, 1}}, now, &a); !done || a.Allowed != want {
				t.Fatalf("take %d: got %+v, %v, want allowed: %v", i+1, a, done, want)
			}
			if !want && a.Binding != 1 {
				t.Errorf("take %d: the refusal names ask %d, want 1", i+1, a.Binding)
			}
		}
		var a algorithm.Answer
		if rows[0].Take(77, now, 0, &a); a.Remaining != 2 {
			t.Errorf("beside a row of %d limits, the first key has %d units left, want 2: a refusal took some", limits, a.Remaining)
		}
	}
}

func TestTakeAllLeavesOneEntryTwiceToTheLock(t *testing.T) {
	const now = 1_700_000_000_000_000_000
	rows := twoKeys(now, 5, 3, 2)
	var a algorithm.Answer
	if TakeAll([]Ask{{rows[0], 77, 1}, {rows[0], 77, 1}}, now, &a) || a != (algorithm.Answer{}) {
		t.Errorf("TakeAll decided on one entry twice: %+v", a)
	}
}

// TestCallersThatHoldKeysInOppositeOrdersBothGoOn counts every unit: callers take from the same keys in both orders,
// others from each key alone, and segments are replaced meanwhile.
func TestCallersThatHoldKeysInOppositeOrdersBothGoOn(t *testing.T) {
	for limits := 1; limits <= 2; limits++ {
		takeInOppositeOrders(t, limits)
	}
}

func takeInOppositeOrders(t *testing.T, limits int) {
	const now, burst, keys, rounds = 1_700_000_000_000_000_000, 1_000_000, 4, 3000
	rows := twoKeys(now, burst, burst, limits)
	var taken [2][keys]atomic.Int64
	var workers sync.WaitGroup
	for worker := range 6 {
		workers.Go(func() {
			for i := range rounds {
				first, second := 100+table.Hash(i%keys)<<32, 100+table.Hash(i/2%keys)<<32
				asks := []Ask{{rows[0], first, 1}, {rows[1], second, 2}}
				var a algorithm.Answer
				switch worker {
				case 0, 1:
				case 2, 3:
					asks[0], asks[1] = asks[1], asks[0]
				case 4:
					asks = asks[:1]
				case 5:
					rows[0].in.Claim(table.Hash(i)*0x9e3779b97f4a7c15, now) // grows the tables
					rows[1].in.Claim(table.Hash(i)*0x9e3779b97f4a7c15, now)
					continue
				}
				for !TakeAll(asks, now, &a) {
				}
				for _, q := range asks {
					if q.Row == rows[0] {
						taken[0][i%keys].Add(q.N)
					} else {
						taken[1][i/2%keys].Add(q.N)
					}
				}
			}
		})
	}
	workers.Wait()
	for i, row := range rows {
		for key := range keys {
			var a algorithm.Answer
			if row.Take(100+table.Hash(key)<<32, now, 0, &a); a.Remaining != burst-taken[i][key].Load() {
				t.Errorf("row %d, key %d: %d units are left, want %d - %d", i, key, a.Remaining, burst, taken[i][key].Load())
			}
		}
	}
}

// TestAChangeOfTheKindOfEntryKeepsTheState drains a key, and then gives its table a fine rate and further limits, which
// make entries of two words and more.
func TestAChangeOfTheKindOfEntryKeepsTheState(t *testing.T) {
	const now = 1_700_000_000_000_000_000
	in := NewTable(0)
	tenth := algorithm.NewTokenBucket(3, 1_000_000_000, 7)
	c := in.AddColumn(tenth, now)
	limit := c.Limit(tenth)
	var a algorithm.Answer
	limit.Take(99, now, 5, &a)
	state := func() (algorithm.State, int) {
		e := in.Find(99)
		return limit.Unpack(in.layoutOf(e).read(c, e, e.First())), len(e.Words)
	}
	want, _ := state()
	widths := map[int]bool{}
	for i, change := range []func(){
		func() {},
		func() { c.Limit(algorithm.NewTokenBucket(333, 1_000_000_000, 7)) },
		func() { in.AddColumn(algorithm.NewFixedWindow(9, 3600), now) },
		func() { in.AddColumn(algorithm.NewTokenBucket(11, 1_000_000_000, 7), now) },
		func() { in.Upgrade(99, now) },
	} {
		change()
		in.Upgrade(99, now)
		got, width := state()
		widths[width] = true
		if got.A != want.A || got.B != want.B || got.C != want.C {
			t.Errorf("after change %d, in %d words, the state is %+v, want %+v", i, width, got, want)
		}
		a = algorithm.Answer{}
		if done := limit.Take(99, now, 3, &a); !done || a.Allowed || a.Remaining != 2 {
			t.Errorf("after change %d: three of two units: %+v, %v", i, a, done)
		}
	}
	if !widths[1] || !widths[2] || !widths[3] || !widths[5] {
		t.Errorf("the entry had %v words, want 1, 2, 3 and 5", widths)
	}
}

// TestARateWithoutANumberIsLeftToTheLock uses up the numbers of rates. The words of a limit without a number cannot be told
// from those of the first rate.
func TestARateWithoutANumberIsLeftToTheLock(t *testing.T) {
	const now = 1_700_000_000_000_000_000
	in := NewTable(0)
	first := algorithm.NewTokenBucket(1, 1_000_000_000, 5)
	c := in.AddColumn(first, now)
	var a algorithm.Answer
	c.Limit(first).Take(99, now, 5, &a)
	for i := range int64(algorithm.MaxRates) {
		c.Limit(algorithm.NewTokenBucket(1, 1_000_000_001+i, 5))
	}
	a = algorithm.Answer{}
	if done := c.Limit(algorithm.NewTokenBucket(1, 7, 5)).Take(99, now, 1, &a); done || a != (algorithm.Answer{}) {
		t.Errorf("a limit without a number decided on words: %+v", a)
	}
}

// watched is a window that calls seen for each word on which it decides.
type watched struct {
	*algorithm.FixedWindow
	seen func()
}

func (w *watched) Unpack(word uint64, base int64) algorithm.State {
	w.seen()
	return w.FixedWindow.Unpack(word, base)
}
