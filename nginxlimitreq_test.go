package weir_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestNginxLimitReqOutOfBoundsIsRefused(t *testing.T) {
	const above = 100_000_001
	for field, limit := range map[string]weir.NginxLimitReq{
		"period": {Rate: weir.PerHour(1)},
		"rate":   {Rate: weir.PerSecond(above)},
		"burst":  {Rate: weir.PerSecond(1), Burst: -1},
		"delay":  {Rate: weir.PerSecond(1), Burst: 2, Delay: 1, NoDelay: true},
	} {
		wantLimitError(t, limit, field)
		if limiter, err := weir.NewNginxLimiter(limit); limiter != nil || err == nil {
			t.Errorf("NewNginxLimiter(%+v): got %v and error %v, want only an error", limit, limiter, err)
		}
	}
	wantLimitError(t, weir.NginxLimitReq{Rate: weir.PerSecond(1), Burst: above}, "burst")
}

func TestNginxLimitReqDelaysNoLongerThanADuration(t *testing.T) {
	limiter, err := weir.NewNginxLimiter(weir.NginxLimitReq{Rate: weir.PerMinute(1), Burst: 100_000_000})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, 0)
	limiter.TakeAt(at)
	if d := limiter.TakeAt(at); !d.Allowed || d.Delay != 62500*time.Millisecond {
		t.Errorf("the second of 1 r/m: got %+v, want a delay of 62.5s, since it counts 16 thousandths a second", d)
	}
}
