package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func TestCachedClockIsLateByItsPrecisionAtMostAndNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const precision = time.Millisecond
		c := weir.NewCachedClock(precision)
		defer c.Close()
		defer c.Close() // a second time does nothing
		for range 5000 {
			time.Sleep(333 * time.Microsecond)
			synctest.Wait()
			if late := time.Now().UnixNano() - c.Now(); late < 0 || late >= int64(precision) {
				t.Fatalf("%v: the clock is %v late, want 0 to %v", time.Now(), time.Duration(late), precision)
			}
		}
	})
}

func TestLimitsRunOnAnInjectedClock(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	clock := func() int64 { return now }
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1)}, weir.Options{Clock: clock})
	keyed, err := weir.NewKeyedWith[string](weir.TokenBucket{Rate: weir.PerSecond(1)}, weir.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	for name, allow := range map[string]func() bool{"Limiter": lim.Allow, "Keyed": func() bool { return keyed.Allow("a") }} {
		if !allow() || allow() {
			t.Errorf("%s: want one unit at one instant", name)
		}
		now += int64(time.Second)
		if !allow() {
			t.Errorf("%s: want another unit a second later", name)
		}
	}
}
