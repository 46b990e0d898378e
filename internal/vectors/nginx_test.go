package vectors_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
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

// nginx is one key under a limit, with the excess that nginx logs.
type nginx struct {
	limiter *weir.Limiter
	limit   *algorithm.Nginx
	state   algorithm.State
}

func newNginx(t *testing.T, s nginxScenario) *nginx {
	t.Helper()
	limit := s.limit()
	limiter, err := weir.New(limit)
	if err != nil {
		t.Fatal(err)
	}
	delay := limit.Delay
	if limit.NoDelay {
		delay = -1
	}
	return &nginx{limiter: limiter, limit: algorithm.NewNginx(limit.Rate.Count, limit.Rate.Period == time.Minute, limit.Burst, delay)}
}

func (n *nginx) take(now int64) (d weir.Decision, excess int64) {
	d = n.limiter.TakeAt(time.Unix(0, now), 1)
	excess, _ = n.limit.Excess(n.state, now)
	if d.Allowed {
		n.state = n.limit.Take(n.state, now, 1)
	}
	return d, excess
}

func TestNginxLimitReqPassesVectors(t *testing.T) {
	for _, line := range dialect(t, "nginx_limit_req") {
		var s nginxScenario
		if err := json.Unmarshal(line.Line, &s); err != nil {
			t.Fatalf("%s: %v", line.ID, err)
		}
		keys := map[string]*nginx{}
		for i, op := range s.Ops {
			if keys[op.Key] == nil {
				keys[op.Key] = newNginx(t, s)
			}
			d, excess := keys[op.Key].take(s.T0 + op.T)
			if want := op.Want; d.Allowed != want.Allowed || excess != want.Excess || int64(d.Delay) != want.Delay {
				t.Errorf("%s op %d at t0%+d of %q: got %+v with an excess of %d, want %+v", line.ID, i, op.T, op.Key, d, excess, want)
			}
		}
	}
}
