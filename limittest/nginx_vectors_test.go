package limittest_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// nginxScenario is one line of nginx_limit_req.jsonl.
type nginxScenario struct {
	Params struct {
		Rate, Burst int64
		Unit        string
		Delay       *int64 // nil means nodelay
	}
	T0  int64
	Ops []struct {
		T    int64
		Key  string
		Want struct {
			Allowed       bool
			Excess, Delay int64
		}
	}
}

func (s nginxScenario) limit() weir.NginxLimitReq {
	l := weir.NginxLimitReq{Rate: weir.PerSecond(s.Params.Rate), Burst: s.Params.Burst, NoDelay: s.Params.Delay == nil}
	if s.Params.Unit == "m" {
		l.Rate = weir.PerMinute(s.Params.Rate)
	}
	if !l.NoDelay {
		l.Delay = *s.Params.Delay
	}
	return l
}

func TestNginxLimitReqPassesVectors(t *testing.T) {
	for _, line := range dialect(t, "nginx_limit_req") {
		var s nginxScenario
		if err := json.Unmarshal(line.Line, &s); err != nil {
			t.Fatalf("%s: %v", line.ID, err)
		}
		limiters := map[string]*weir.NginxLimiter{}
		for i, op := range s.Ops {
			if limiters[op.Key] == nil {
				limiter, err := weir.NewNginxLimiter(s.limit())
				if err != nil {
					t.Fatalf("%s: %v", line.ID, err)
				}
				limiters[op.Key] = limiter
			}
			got := limiters[op.Key].TakeAt(time.Unix(0, s.T0+op.T))
			want := weir.NginxDecision{Allowed: op.Want.Allowed, Excess: op.Want.Excess, Delay: time.Duration(op.Want.Delay)}
			if got != want {
				t.Errorf("%s op %d at t0%+d of %q: got %+v, want %+v", line.ID, i, op.T, op.Key, got, want)
			}
		}
	}
}
