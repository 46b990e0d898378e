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

// takeOn decides once on an entry.
func takeOn(r *Row, e table.Entry, n int64, a *algorithm.Answer) result {
	d := decision{seen: make([]seen, 1), parts: make([]part, len(r.limits))}
	asks := []Ask{{Row: r, Key: pairKey, Cost: n}}
	if result := d.look(&asks[0], e, pairNow); result != decided {
		return result
	}
	return d.finish(asks, pairNow, a)
}

func rowTake(r *Row, n int64, a *algorithm.Answer) (done bool) {
	return Decide([]Ask{{Row: r, Key: pairKey, Cost: n}}, pairNow, false, a)
}

// exhaustedRow returns a row of limits that has taken all n units of one of them, and the key's entry.
func exhaustedRow(t *testing.T, n int64, limits ...algorithm.Worder) (*Row, table.Entry) {
	r := rowOn(limits...)
	var a algorithm.Answer
	if !rowTake(r, n, &a) || !a.Allowed {
		t.Fatalf("the first %d units: %+v", n, a)
	}
	return r, r.in.Find(pairKey)
}

// A decision that seizes nothing is of one instant: if a word on which it decided has changed before it ends, it decides
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
			rowTake(r, 5, new(algorithm.Answer))
		}, 6, false, false},
		{"another caller takes from both limits, an admission", func(r *Row, _ table.Entry) {
			rowTake(r, 5, new(algorithm.Answer))
		}, 2, false, false},
		{"another caller takes from the second limit, an admission", func(r *Row, _ table.Entry) {
			r.limits[1].Take(pairKey, pairNow, 1, new(algorithm.Answer))
		}, 2, false, false},
		{"another caller has seized the entry, a refusal", func(_ *Row, e table.Entry) { e.Seize(false) }, 6, false, false},
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
		done := takeOn(r, e, tt.n, &a) == decided
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
		if !taken && r != nil && r.in.Find(pairKey).First() < table.Seized {
			taken = true
			rowTake(r, 5, new(algorithm.Answer))
		}
	}}
	made, _ := exhaustedRow(t, 4, first, algorithm.NewFixedWindow(10, 3600e9))
	r = made
	var a algorithm.Answer
	if done := rowTake(r, 3, &a); !done || !taken || a.Allowed || a.Remaining != 0 {
		t.Errorf("got %+v, %v, want a refusal with no unit left", a, done)
	}
}

// Of two keys, one has 5 of 10 units left. Another caller takes from either of them after a decision has seen both: the decision
// is made again.
func TestADecisionOfTwoKeysIsOfOneInstant(t *testing.T) {
	const other = pairKey + 1<<32
	for _, tt := range []struct {
		name string
		take table.Hash // what the other caller takes from meanwhile
		n    int64
		left [2]int64 // afterwards
	}{
		{"an admission, and a take of the one", pairKey, 3, [2]int64{1, 7}},
		{"an admission, and a take of the other", other, 3, [2]int64{2, 6}},
		{"no admission after a take of the one", pairKey, 5, [2]int64{4, 10}},
		{"a refusal, and a take of the other", other, 6, [2]int64{5, 9}},
	} {
		in := NewTable(0)
		looks := 5
		var row *Row
		watch := &watched{algorithm.NewFixedWindow(10, 3600e9), func() {
			if looks++; looks == 2 {
				Decide([]Ask{{Row: row, Key: tt.take, Cost: 1}}, pairNow, false, new(algorithm.Answer))
			}
		}}
		row = newRow(in, []*Limit{in.AddColumn(watch, pairNow).Limit(watch)})
		var a algorithm.Answer
		if !Decide([]Ask{{Row: row, Key: pairKey, Cost: 5}}, pairNow, false, &a) || !Decide([]Ask{{Row: row, Key: other, Cost: 0}}, pairNow, false, new(algorithm.Answer)) {
			t.Fatal("the words do not decide")
		}
		looks, a = 0, algorithm.Answer{}
		if !Decide([]Ask{{Row: row, Key: other, Cost: tt.n}, {Row: row, Key: pairKey, Cost: tt.n}}, pairNow, false, &a) || looks != 5 || a.Allowed != (tt.n == 3) {
			t.Errorf("%s: got %+v after %d looks, want 5: two of each decision, and that of the other caller", tt.name, a, looks)
		}
		looks = 5
		for i, h := range []table.Hash{pairKey, other} {
			var a algorithm.Answer
			if Decide([]Ask{{Row: row, Key: h, Cost: 0}}, pairNow, false, &a); a.Remaining != tt.left[i] {
				t.Errorf("%s: key %d has %d units left, want %d", tt.name, i+1, a.Remaining, tt.left[i])
			}
		}
	}
}

// Callers that seize each other's entries let go of theirs. A decision that does not get all entries in time leaves them as they
// were, to the lock.
func TestADecisionOfTwoKeysWaitsForNoHolder(t *testing.T) {
	const other = pairKey + 1<<32
	r := rowOn(algorithm.NewFixedWindow(10, 3600e9))
	for _, h := range []table.Hash{pairKey, other} {
		Decide([]Ask{{Row: r, Key: h, Cost: 1}}, pairNow, false, new(algorithm.Answer))
	}
	first, seized := r.in.Find(other).First(), r.in.Find(other)
	d := decision{seen: make([]seen, 2), parts: make([]part, 2)}
	asks := []Ask{{Row: r, Key: pairKey, Cost: 1}, {Row: r, Key: other, Cost: 1}}
	for i := range asks {
		if result := d.look(&asks[i], r.in.Find(asks[i].Key), pairNow); result != decided {
			t.Fatal(result)
		}
	}
	seized.Seize(false)
	var a algorithm.Answer
	if result := d.finish(asks, pairNow, &a); result != moved {
		t.Errorf("got %v, want that the decision is made again", result)
	}
	if done := Decide(asks, pairNow, false, &algorithm.Answer{}); done {
		t.Error("a decision was made on an entry that another caller has seized")
	}
	seized.Release(first)
	a = algorithm.Answer{}
	if done := Decide(asks, pairNow, false, &a); !done || !a.Allowed || a.Remaining != 8 {
		t.Errorf("got %+v, %v, want 8 units left of both", a, done)
	}
}

// The last entry changes without being seized, and those before it only when they are.
func TestADecisionOfTwoKeysWritesBothWordsOrNeither(t *testing.T) {
	const other = pairKey + 1<<32
	r := rowOn(algorithm.NewFixedWindow(10, 3600e9))
	d := decision{seen: make([]seen, 2), parts: make([]part, 2)}
	asks := []Ask{{Row: r, Key: pairKey, Cost: 1}, {Row: r, Key: other, Cost: 1}}
	for i := range asks {
		if result := d.look(&asks[i], r.in.Claim(asks[i].Key, pairNow), pairNow); result != decided {
			t.Fatal(result)
		}
	}
	Decide(asks[1:], pairNow, false, new(algorithm.Answer)) // another caller
	if result := d.finish(asks, pairNow, new(algorithm.Answer)); result != moved {
		t.Errorf("got %v, want that the decision is made again", result)
	}
	if first := r.in.Find(pairKey).First(); first != table.Fresh {
		t.Errorf("the first key has the word %x, want none", first)
	}
	var a algorithm.Answer
	if Decide(asks, pairNow, false, &a); a.Remaining != 8 {
		t.Errorf("got %+v, want 8 units left of the second key", a)
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
