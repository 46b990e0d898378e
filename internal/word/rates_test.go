package word

import (
	"runtime"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

func TestNumberingAThousandRatesDoesNotCopyAllOfThemEachTime(t *testing.T) {
	const count = 1000
	limits := make([]algorithm.Pairer, count)
	for i := range limits {
		limits[i] = algorithm.NewTokenBucket(int64(10+i), 1e9, 5)
	}
	rates := newRates(limits[0])
	early := *rates.writers.Load()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, l := range limits {
		if number, ok := rates.number(l); number != i || !ok {
			t.Fatalf("rate %d has the number %d, %v", i, number, ok)
		}
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 {
		t.Errorf("numbering %d rates allocated %d bytes, want at most %d", count, bytes, 1<<20)
	}
	for i, l := range limits {
		if rates.writer(i) != l {
			t.Errorf("the writer of number %d is that of another rate", i)
		}
	}
	if len(early) != 1 || early[0] != limits[0] {
		t.Errorf("the earliest list has changed: %v", early)
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
