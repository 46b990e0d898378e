package word

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// exhausted returns a limit whose states need two words, of rate units in a period, and the entry of a key that has taken
// burst units.
func exhausted(t *testing.T, rate, period, burst int64) (*Limit, table.Entry) {
	like := algorithm.NewTokenBucket(rate, period, burst)
	l := NewTable(0).AddColumn(like, pairNow).Limit(like)
	var a algorithm.Answer
	if !l.Take(pairKey, pairNow, burst, &a) || !a.Allowed {
		t.Fatalf("the first %d units: %+v", burst, a)
	}
	return l, l.in.Find(pairKey)
}

// exhaustedSingle returns a Single whose state needs two words and has taken burst units.
func exhaustedSingle(t *testing.T, rate, period, burst int64) *Single {
	like := algorithm.NewTokenBucket(rate, period, burst)
	s, state := NewSingle(like, pairNow), like.Fresh()
	s.Return(&state, pairNow)
	if allowed, done := s.Allow(pairNow, burst); !allowed || !done {
		t.Fatalf("the first %d units: allowed %v, done %v", burst, allowed, done)
	}
	return s
}

const (
	pairNow = int64(1_700_000_000_000_000_000)
	pairKey = table.Hash(77)
)

// inPair is a decision on two words of a key or of a Single, and what other callers do to them.
type inPair struct {
	pair
	*decider
	take, lend func()
}

func inEntry(t *testing.T) inPair {
	l, e := exhausted(t, 13, 100_000_000, 3)
	return inPair{l.pairAt(e, pairKey), &l.decider, func() {
		l.Take(pairKey, pairNow+1e9, 1, new(algorithm.Answer))
	}, func() {
		loan, _ := l.in.Borrow(pairKey, pairNow)
		loan.Return(pairNow)
	}}
}

func inSingle(t *testing.T) inPair {
	s := exhaustedSingle(t, 13, 100_000_000, 3)
	return inPair{s.pair(), &s.decider, func() { s.Allow(pairNow+1e9, 1) }, func() {
		var state algorithm.State
		s.Borrow(&state)
		s.Return(&state, pairNow)
	}}
}

// A glimpse decides if the words have not changed since, and otherwise it leaves the answer and the words as they were.
func TestAGlimpseOfWordsThatHaveChangedDecidesNothing(t *testing.T) {
	tests := []struct {
		name   string
		change func(in inPair)
		want   result
	}{
		{"nothing", func(inPair) {}, decided},
		{"another caller takes a unit", func(in inPair) { in.take() }, moved},
		{"another caller has seized the words", func(in inPair) { table.SeizeWord(&in.pair.words[0], false) }, moved},
		{"a loan brings the words back", func(in inPair) { in.lend() }, moved},
	}
	for _, tt := range tests {
		for _, in := range []inPair{inEntry(t), inSingle(t)} {
			seen := in.glimpse()
			tt.change(in)
			before := *in.pair.words
			var a algorithm.Answer
			if _, got := in.takePair(in.pair, seen, 0, pairNow, 1, &a); got != tt.want {
				t.Errorf("%s: a refusal has result %d, want %d", tt.name, got, tt.want)
			}
			checkUnchanged(t, tt.name, in.pair.words, before, tt.want, &a)
		}
	}
}

func checkUnchanged(t *testing.T, name string, words *[2]uint64, before [2]uint64, r result, a *algorithm.Answer) {
	t.Helper()
	if *words != before {
		t.Errorf("%s: the words %#x became %#x", name, before, *words)
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
	at := l.pairAt(l.in.Find(pairKey), pairKey)
	seen := at.glimpse()
	l.Take(pairKey, pairNow, 1, new(algorithm.Answer))
	before := *at.words
	if before[0] != seen.first || before[1] == seen.second {
		t.Fatalf("a unit changed the words %#x to %#x, want only the second changed", []uint64{seen.first, seen.second}, before)
	}
	var a algorithm.Answer
	if _, got := l.takePair(at, seen, 0, pairNow, 1, &a); got != moved {
		t.Errorf("an admission has result %d, want %d", got, moved)
	}
	checkUnchanged(t, "an admission", at.words, before, moved, &a)
	if l.Take(pairKey, pairNow, 0, &a); a.Remaining != 997 {
		t.Errorf("%d units are left of 1000 after 3, want 997", a.Remaining)
	}
}

// A decision on words of two instants, or of two rates, is dropped afterwards. Until then it must not panic.
func TestADecisionOnAnyTwoWordsDoesNotPanic(t *testing.T) {
	words := []uint64{0, 1, 2, 1<<5 | 1, 1 << 11, 1<<11 | 1, 1 << 40, 1 << 58, math.MaxUint64 >> 1, table.Seized - 1}
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
	bucket := algorithm.NewWordDecider(algorithm.NewTokenBucket(rate[0], rate[1], rate[2]))
	queue := algorithm.NewWordDecider(algorithm.NewLeakyBucket(rate[0], rate[1], rate[2]-1, 1))
	for _, now := range []int64{1, Slack, 1 << 57, math.MaxInt64} {
		bucket.DecidePair(first, second, 0, 0, now, n, new(algorithm.Answer))
		queue.DecidePair(first, second, 0, 0, now, n, new(algorithm.Answer))
	}
}

// TestNoCallerIsRefusedOnWordsOfTwoStates lets one caller borrow a state and return another one, again and again, while a
// second one takes a unit of each. Both states have units to spare, but not the first word of one with the second of the
// other.
func TestNoCallerIsRefusedOnWordsOfTwoStates(t *testing.T) {
	const rounds = 300_000
	like := algorithm.NewTokenBucket(13, 20, 1023) // a unit takes 1.5 ns
	s, state := NewSingle(like, pairNow), like.Fresh()
	s.Return(&state, pairNow)
	states := [2]algorithm.State{like.Take(state, pairNow, 1019), like.Take(state, pairNow, 1020)} // 0.3 ns before a step, and 1.2 ns after
	var round atomic.Int64
	go func() {
		for i := range rounds {
			var old algorithm.State
			s.Borrow(&old)
			next := states[i%2]
			s.Return(&next, pairNow)
			round.Add(1)
		}
	}()
	for last := int64(0); last < rounds; {
		now := round.Load()
		if now == last { // at most three units are taken of a state, two of them late
			continue
		}
		last = now
		if allowed, done := s.Allow(pairNow, 1); done && !allowed {
			t.Fatalf("round %d: a unit is refused", now)
		}
	}
}
