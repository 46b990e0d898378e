package ctl

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestAnOverrideLastsForItsTimeAndLessThanASecondMore(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 6))
	for range 1000 {
		now := time.Unix(1_800_000_000, random.Int64N(1e9))
		during := time.Duration(1 + random.Int64N(int64([]time.Duration{time.Second, time.Minute, weir.MaxPeriod - time.Second}[random.IntN(3)])))
		end := endOf(now, during)
		if more := end.Sub(now.Add(during)); more < 0 || more >= time.Second || end.Nanosecond() != 0 {
			t.Fatalf("%v from %v on it ends at %v", during, now, end)
		}
	}
	if now := time.Unix(1_800_000_000, 1); endOf(now, weir.MaxPeriod).Sub(now) > weir.MaxPeriod {
		t.Error("366 days end later than the daemon accepts")
	}
}
