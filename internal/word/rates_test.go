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
