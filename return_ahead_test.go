package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// As docs/why/guarantees.md says: a booking stays where it is, so the returned unit goes ahead beside it.
func TestAReturnLeavesTheBookingThatLiesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		if err != nil {
			t.Fatal(err)
		}
		taken, booked := lim.Allow(), false
		r, err := lim.Reserve(1, weir.Never)
		if err == nil {
			booked = r.Decision.Allowed && r.Decision.Delay == time.Second
		}
		lim.Return(1)
		time.Sleep(time.Second)
		if beside := lim.Allow(); !taken || !booked || !beside || lim.Allow() {
			t.Errorf("taken %v, booked in a second %v, one beside the booking %v; want all, and no other", taken, booked, beside)
		}
	})
}
