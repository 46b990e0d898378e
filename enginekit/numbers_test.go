package enginekit_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
)

// savedLimits are of every kind whose states are saved. The extremes are the bounds of weir.
var savedLimits = []string{
	"3/s", "token bucket 7/11s burst 100", "token bucket 1/1ns burst 9007199254740992", "token bucket 9007199254740992/366d burst 9", "token bucket 1/366d burst 9007199254740992",
	"leaky bucket 5/s queue 10", "fixed window 10/m", "fixed window 1/1ns", "sliding window 10/m", "sliding log 5/10s gap 1s",
	"sliding log 5/10s count denied", "rate gate 5/10s", "cycle 5/500ms origin 3ms", "cycle 1/1ns", "quota 9/day in Europe/Paris", "concurrency 5 lease 10s", "concurrency 5", "unlimited", "deny all",
}

var extremes = []int64{
	0, 1, -1, 5, 10, math.MaxInt64, math.MinInt64, 1 << 53, 1<<53 + 1, 1 << 54, 1 << 62, -1 << 62, 1_700_000_000_000_000_000,
	math.MaxInt64 / 500_000_000, math.MinInt64 / 500_000_000, int64(366 * 24 * time.Hour),
}

func near(r *rand.Rand, values []int64) int64 { return values[r.IntN(len(values))] + r.Int64N(3) - 1 }

// randomNumbers returns numbers of a state that was reached at random instants, perhaps with some of them replaced, or
// numbers of nothing.
func randomNumbers(r *rand.Rand, f told) (numbers []int64) {
	if r.IntN(4) == 0 {
		for range r.IntN(12) {
			numbers = append(numbers, near(r, extremes))
		}
		return numbers
	}
	s := f.Fresh()
	for range r.IntN(6) {
		now := near(r, extremes)
		switch {
		case r.IntN(4) == 0:
			s = f.Give(s, now, r.Int64N(9)+1, uint64(r.IntN(3)))
		case r.IntN(4) == 0 && f.limit.Bookable:
			s = f.Book(s, now, 1, f.UntilDue(s, now, 1))
		default:
			s = f.Take(s, now, []int64{1, 3, math.MaxInt64}[r.IntN(3)], uint64(r.IntN(3)))
		}
	}
	numbers = f.AppendNumbers(nil, s)
	if r.IntN(2) == 0 {
		for i := range numbers {
			if r.IntN(4) == 0 {
				numbers[i] = near(r, extremes)
			}
		}
	}
	return numbers
}

// checkNumbers tests numbers that FromNumbers has accepted: they are those of a state, and it answers like one.
func checkNumbers(t *testing.T, text string, f told, numbers []int64, now int64) {
	t.Helper()
	s, ok := f.FromNumbers(slices.Clone(numbers))
	if !ok {
		return
	}
	if got := f.AppendNumbers(nil, s); !slices.Equal(got, numbers) {
		t.Fatalf("%s: the numbers %v are written as %v", text, numbers, got)
	}
	room, most := f.Room(s, now), f.Capacity()
	if room < 0 || room > most {
		t.Fatalf("%s: numbers %v at %d: room for %d of %d", text, numbers, now, room, most)
	}
	if f.limit.Stateless {
		return
	}
	if wait := f.Wait(s, now, room); wait != 0 {
		t.Fatalf("%s: numbers %v at %d: a wait of %d for %d units, for which there is room", text, numbers, now, wait, room)
	}
	if room < most && f.Wait(s, now, room+1) <= 0 {
		t.Fatalf("%s: numbers %v at %d: no wait for %d units, but room for %d", text, numbers, now, room+1, room)
	}
	if f.ResetAfter(s, now) < f.Wait(s, now, 1) {
		t.Fatalf("%s: numbers %v at %d: fresh after %d, but one unit after %d", text, numbers, now, f.ResetAfter(s, now), f.Wait(s, now, 1))
	}
	written := f.AppendNumbers(nil, f.Give(f.Take(s, now, 1, 7), now, 2, 7))
	if _, ok := f.FromNumbers(written); !ok {
		t.Fatalf("%s: numbers %v at %d: take and give write %v, which is refused", text, numbers, now, written)
	}
}

// told has the functions of a limit and its description.
type told struct {
	enginekit.Functions
	limit weir.Description
}

func functionsOf(t *testing.T, text string) told {
	t.Helper()
	limit, err := weir.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	f, err := enginekit.FunctionsOf(limit, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	return told{f, weir.Describe(limit)}
}

func TestEveryStateIsReadFromItsNumbers(t *testing.T) {
	for _, text := range savedLimits {
		f := functionsOf(t, text)
		for seed := range randtest.Seeds(t, 2000, 2000) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := f.Fresh()
			for range r.IntN(8) {
				now := near(r, extremes)
				if s = f.Take(s, now, 1+r.Int64N(1<<(1+r.IntN(62))), uint64(r.IntN(3))); r.IntN(2) == 0 {
					s = f.Give(s, near(r, extremes), 1+r.Int64N(9), uint64(r.IntN(3)))
				}
			}
			numbers := f.AppendNumbers(nil, s)
			if _, ok := f.FromNumbers(numbers); !ok {
				t.Fatalf("%s, seed %d: its own numbers %v are refused", text, seed, numbers)
			}
		}
	}
}

func TestNumbersThatAreReadAreThoseOfAState(t *testing.T) {
	for _, text := range savedLimits {
		f := functionsOf(t, text)
		for seed := range randtest.Seeds(t, 5000, 5000) {
			r := rand.New(rand.NewPCG(seed, 2))
			checkNumbers(t, text, f, randomNumbers(r, f), near(r, extremes))
		}
	}
}

func FuzzNumbersThatAreReadAreThoseOfAState(f *testing.F) {
	f.Add(uint8(0), int64(1_700_000_000_000_000_000), binary.BigEndian.AppendUint64(nil, 1<<62))
	f.Fuzz(func(t *testing.T, kind uint8, now int64, input []byte) {
		text := savedLimits[int(kind)%len(savedLimits)]
		numbers := make([]int64, len(input)/8)
		for i := range numbers {
			numbers[i] = int64(binary.BigEndian.Uint64(input[8*i:]))
		}
		checkNumbers(t, text, functionsOf(t, text), numbers, now)
	})
}
