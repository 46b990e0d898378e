package word

import (
	"math"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// exhausted returns a limit whose states need two words, of 13 units in 100 ms, and the entry of a key that has taken burst
// units.
func exhausted(t *testing.T, burst int64) (*Limit, table.Entry) {
	like := algorithm.NewTokenBucket(13, 100_000_000, burst)
	l := NewTable(0).AddColumn(like, pairNow).Limit(like)
	var a algorithm.Answer
	if !l.Take(pairKey, pairNow, burst, &a) || !a.Allowed {
		t.Fatalf("the first %d units: %+v", burst, a)
	}
	return l, l.in.Find(pairKey)
}

const (
	pairNow = int64(1_700_000_000_000_000_000)
	pairKey = table.Hash(77)
)

// A glimpse decides if the entry has not changed since, and otherwise it leaves the answer and the entry as they were.
func TestAGlimpseOfAnEntryThatHasChangedDecidesNothing(t *testing.T) {
	tests := []struct {
		name   string
		change func(l *Limit, e table.Entry)
		want   result
	}{
		{"nothing", func(*Limit, table.Entry) {}, decided},
		{"another caller takes a unit", func(l *Limit, _ table.Entry) {
			l.Take(pairKey, pairNow+1e9, 1, new(algorithm.Answer))
		}, moved},
		{"another caller holds the entry", func(_ *Limit, e table.Entry) { e.Hold(false) }, moved},
		{"a loan brings the words back", func(l *Limit, _ table.Entry) {
			loan, _ := l.in.Borrow(pairKey, pairNow)
			loan.Return(pairNow)
		}, moved},
	}
	for _, tt := range tests {
		l, e := exhausted(t, 3)
		seen := l.glimpse(e, pairKey)
		tt.change(l, e)
		before := [2]uint64{e.Words[0], e.Words[1]}
		var a algorithm.Answer
		if got := l.takePair(e, seen, pairKey, pairNow, 1, &a); got != tt.want {
			t.Errorf("%s: a refusal has result %d, want %d", tt.name, got, tt.want)
		}
		checkUnchanged(t, tt.name, e, before, tt.want, &a)
	}
}

func checkUnchanged(t *testing.T, name string, e table.Entry, before [2]uint64, r result, a *algorithm.Answer) {
	t.Helper()
	if after := [2]uint64{e.Words[0], e.Words[1]}; after != before {
		t.Errorf("%s: the words %#x became %#x", name, before, after)
	}
	if r != decided && *a != (algorithm.Answer{}) {
		t.Errorf("%s: the answer is %+v, want none", name, *a)
	}
}

// The second word can change while the first stays, if a unit takes less than a step of the first.
func TestAnAdmissionFindsThatTheSecondWordHasChanged(t *testing.T) {
	like := algorithm.NewTokenBucket(13, 20, 1000)
	l := NewTable(0).AddColumn(like, pairNow).Limit(like)
	if l.Take(pairKey, pairNow, 1, new(algorithm.Answer)); !l.Take(pairKey, pairNow, 1, new(algorithm.Answer)) {
		t.Fatal("the words do not decide")
	}
	e := l.in.Find(pairKey)
	seen := l.glimpse(e, pairKey)
	l.Take(pairKey, pairNow, 1, new(algorithm.Answer))
	before := [2]uint64{e.Words[0], e.Words[1]}
	if before[0] != seen.First || before[1] == seen.Second {
		t.Fatalf("a unit changed the words %#x to %#x, want only the second changed", seen.Words, before)
	}
	var a algorithm.Answer
	if got := l.takePair(e, seen, pairKey, pairNow, 1, &a); got != moved {
		t.Errorf("an admission has result %d, want %d", got, moved)
	}
	checkUnchanged(t, "an admission", e, before, moved, &a)
	if l.Take(pairKey, pairNow, 0, &a); a.Remaining != 997 {
		t.Errorf("%d units are left of 1000 after 3, want 997", a.Remaining)
	}
}

// A decision on words of two instants, or of two rates, is dropped afterwards. Until then it must not panic.
func TestADecisionOnAnyTwoWordsDoesNotPanic(t *testing.T) {
	words := []uint64{0, 1, 2, 1<<5 | 1, 1 << 11, 1<<11 | 1, 1 << 40, 1 << 58, math.MaxUint64 >> 1, table.Held - 1}
	for now := int64(1); now < 1<<56; now *= 8 {
		first := uint64(now+Slack)>>5<<11 | 1
		words = append(words, first, first+1<<11, first-1<<11)
	}
	for _, rate := range [][3]int64{{13, 100_000_000, 3}, {333, 1e9, 1 << 40}, {1<<53 - 1, 1 << 54, 1 << 53}, {11, 1 << 54, 5}} {
		for _, first := range words {
			for _, second := range append(words, math.MaxUint64) {
				for _, n := range []int64{0, 1, 2, rate[2], rate[2] + 1, math.MaxInt64} {
					decideAny(rate, first, second, n)
				}
			}
		}
	}
}

func decideAny(rate [3]int64, first, second uint64, n int64) {
	bucket := algorithm.NewTokenBucket(rate[0], rate[1], rate[2])
	queue := algorithm.NewLeakyBucket(rate[0], rate[1], rate[2]-1, 1)
	for _, now := range []int64{1, Slack, 1 << 57, math.MaxInt64} {
		bucket.DecidePair(first, second, 0, 0, now, n, new(algorithm.Answer))
		queue.DecidePair(first, second, 0, 0, now, n, new(algorithm.Answer))
	}
}
