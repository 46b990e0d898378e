package word

import (
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// rowOn returns the row of limits on columns of one table.
func rowOn(limits ...algorithm.Worder) *Row {
	in := NewTable(0)
	var on []*Limit
	for _, l := range limits {
		on = append(on, in.AddColumn(l, pairNow).Limit(l))
	}
	return NewRow(on)
}

// exhaustedRow returns a row of limits that has taken all n units of one of them, and the key's entry.
func exhaustedRow(t *testing.T, n int64, limits ...algorithm.Worder) (*Row, table.Entry) {
	r := rowOn(limits...)
	var a algorithm.Answer
	if !r.Take(pairKey, pairNow, n, &a) || !a.Allowed {
		t.Fatalf("the first %d units: %+v", n, a)
	}
	return r, r.in.Find(pairKey)
}

// A decision without a hold is of one instant: if a word on which it decided has changed before it ends, it decides
// nothing, and leaves the entry as it was.
func TestARowDecidesNothingOnAnEntryThatChangesMeanwhile(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(r *Row, e table.Entry)
		n        int64
		want     bool
		restored bool // the entry has the same words as before
	}{
		{"nothing, a refusal", func(*Row, table.Entry) {}, 6, true, true},
		{"another caller takes from both limits, a refusal", func(r *Row, _ table.Entry) {
			r.Take(pairKey, pairNow, 5, new(algorithm.Answer))
		}, 6, false, false},
		{"another caller takes from both limits, an admission", func(r *Row, _ table.Entry) {
			r.Take(pairKey, pairNow, 5, new(algorithm.Answer))
		}, 2, false, false},
		{"another caller takes from the second limit, an admission", func(r *Row, _ table.Entry) {
			r.limits[1].Take(pairKey, pairNow, 1, new(algorithm.Answer))
		}, 2, false, false},
		{"another caller holds the entry, a refusal", func(_ *Row, e table.Entry) { e.Hold(false) }, 6, false, false},
		{"a loan brings the words back, a refusal", func(r *Row, _ table.Entry) {
			loan, _ := r.in.Borrow(pairKey, pairNow)
			loan.Return(pairNow)
		}, 6, false, true},
	} {
		var meanwhile func()
		second := &watched{algorithm.NewFixedWindow(10, 3600e9), func() {
			if f := meanwhile; f != nil {
				meanwhile = nil
				f()
			}
		}}
		r, e := exhaustedRow(t, 4, algorithm.NewFixedWindow(9, 3600e9), second)
		before := [2]uint64{e.Words[0], e.Words[1]}
		after := before
		meanwhile = func() {
			tt.change(r, e)
			after = [2]uint64{e.Words[0], e.Words[1]}
		}
		var a algorithm.Answer
		done := r.take(e, pairKey, pairNow, tt.n, &a) == decided
		if done != tt.want || done && (a.Allowed || a.Remaining != 5) {
			t.Errorf("%s: got %+v, %v, want decided: %v", tt.name, a, done, tt.want)
		}
		if now := [2]uint64{e.Words[0], e.Words[1]}; now != after || (now == before) != tt.restored {
			t.Errorf("%s: the words %#x became %#x and then %#x", tt.name, before, after, now)
		}
	}
}

// Words of two instants would name units that the key never had together: here the limits have 5 and 6 units left, and
// then 0 and 1.
func TestARefusalOfARowIsOfOneInstant(t *testing.T) {
	taken := false
	var r *Row
	first := &watched{algorithm.NewFixedWindow(9, 3600e9), func() {
		if !taken && r != nil && r.in.Find(pairKey).First() < table.Held {
			taken = true
			r.Take(pairKey, pairNow, 5, new(algorithm.Answer))
		}
	}}
	made, _ := exhaustedRow(t, 4, first, algorithm.NewFixedWindow(10, 3600e9))
	r = made
	var a algorithm.Answer
	if done := r.Take(pairKey, pairNow, 3, &a); !done || !taken || a.Allowed || a.Remaining != 0 {
		t.Errorf("got %+v, %v, want a refusal with no unit left", a, done)
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
