package pace_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// A caller keeps its place for any time, also when a part of the callers brings another limit for the key.
func TestCallersThatWaitForHoursKeepTheirOrder(t *testing.T) {
	callers := 24 // half of them under the limit of before
	if testing.Short() {
		callers = 12
	}
	for _, limits := range [][2]string{{"fixed window 1/1h", "fixed window 1/1h"}, {"fixed window 1/1h", "fixed window 2/1h"}, {"sliding log 3/1h", "sliding log 1/1h"}} {
		t.Run(limits[0]+" and "+limits[1], func(t *testing.T) {
			onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
				q, before, after := mustQueue(t, engine), rule(t, "quota", limits[0]), rule(t, "quota", limits[1])
				went := arrive(t.Context(), t, q, callers, func(i int) []weir.Request {
					if i < callers/2 {
						return []weir.Request{before.For("k", 1)}
					}
					return []weir.Request{after.For("k", 1)}
				})()
				if !slices.IsSorted(went[:callers/2]) || !slices.IsSorted(went[callers/2:]) || limits[0] == limits[1] && !slices.IsSorted(went) {
					t.Errorf("the callers went after %v, want them in order of arrival", went)
				}
				if last := went[callers-1]; last < time.Duration(callers/3-1)*time.Hour {
					t.Errorf("the last of %d callers went after %v, want at most 3 an hour", callers, last)
				}
			})
		})
	}
}

// The clock of the engine decides, whatever the clock of the process shows.
func TestAClockThatIsAnHourOffChangesNoWait(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return time.Now().Add(off).UnixNano() }})
			q, vendor := mustQueue(t, engine), rule(t, "vendor", "token bucket 1/1s burst 2")
			went := arrive(t.Context(), t, q, 20, func(int) []weir.Request { return []weir.Request{vendor.For("k", 1)} })()
			for i, at := range went {
				if want := time.Duration(max(0, i-1)) * time.Second; at != want {
					t.Errorf("a clock off by %v: caller %d went after %v, want %v", off, i, at, want)
				}
			}
		})
	}
}

// When the engine's clock runs back, waiting callers wait longer, and none goes that would not have gone.
func TestAnEngineWhoseClockRunsBackMintsNothing(t *testing.T) {
	for _, limits := range []string{"token bucket 1/1s burst 2", "rate gate 2/2s", "fixed window 2/2s", "sliding window 2/2s", "sliding log 2/2s"} {
		synctest.Test(t, func(t *testing.T) {
			var back atomic.Int64
			engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return time.Now().UnixNano() - back.Load() }})
			q, vendor := mustQueue(t, engine), rule(t, "vendor", limits)
			time.AfterFunc(5500*time.Millisecond, func() { back.Store(int64(time.Hour)) })
			went := arrive(t.Context(), t, q, 20, func(int) []weir.Request { return []weir.Request{vendor.For("k", 1)} })()
			for i, at := range went {
				if earliest := time.Duration(max(0, i-3)) * time.Second; at < earliest { // 2 and 1/s, or 4 in any 2 s of two windows
					t.Errorf("%s: caller %d went after %v, want %v at the earliest", limits, i, at, earliest)
				}
				if at > 2*time.Hour {
					t.Errorf("%s: caller %d went after %v, want at most an hour and the 20 s of the limit", limits, i, at)
				}
			}
		})
	}
}
