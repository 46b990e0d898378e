package decide

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func TestAWaitGoesWhenThePoolDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(poolRules, "fixed window 3/h", "token bucket 1/s burst 3", 1)
		p := newPooled(t, weir.NewMemory(weir.MemoryOptions{}), text)
		p.exhaust("a")
		p.take("a", 3)
		began := time.Now()
		made, err := p.Wait(Patient{Client: t.Context(), Patience: time.Minute}, p.asks("a", 1))
		if err != nil || !made.Allowed || made.PaidBy != "pool" || made.On[0].Rule.Name() != "pool" || time.Since(began) != time.Second {
			t.Errorf("after %v the wait got %+v, %v; want that the pool pays after a second", time.Since(began), made, err)
		}
		began = time.Now()
		_, token, _, err := p.Reserve(Patient{Client: t.Context(), Patience: time.Minute}, p.asks("a", 1))
		if err != nil || token == "" || time.Since(began) != time.Second {
			t.Errorf("after %v the reservation got %q, %v; want that the pool pays after a second", time.Since(began), token, err)
		}
		if err := p.Settle(t.Context(), onlyFloor(t), token, false, 0); err != nil {
			t.Errorf("the settlement got %v", err)
		}
		p.left(1)
		refused, err := p.Wait(Patient{Client: t.Context(), Patience: time.Second}, p.asks("a", 3))
		if err != nil || refused.Allowed || refused.PaidBy != "" || refused.Rule != "floor" || refused.RetryAfter <= time.Second {
			t.Errorf("a wait beyond its patience got %+v, %v; want a refusal", refused, err)
		}
	})
}

// A reload may change the pool, or take it away, while a caller waits.
func TestAWaitFollowsAReloadOfThePool(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		after            time.Duration
	}{
		{"a larger pool", strings.Replace(poolRules, "3/h", "9/h", 1), "pool", time.Second},
		{"no pool", "attributes: [tenant]\nrules:\n  - {name: floor, match: {path: /v1*}, key: tenant, limit: fixed window 2/h}\n", "floor", time.Hour},
		{"a shadow", strings.Replace(poolRules, "otherwise: pool}", "otherwise: pool, shadow: true}", 1), "floor", time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPooled(t, weir.NewMemory(weir.MemoryOptions{}), poolRules)
			p.exhaust("a")
			p.take("a", 3)
			began := time.Now()
			time.AfterFunc(time.Second, func() {
				config := parsed(t, c.text)
				p.Use(config.Named(), config)
			})
			made, err := p.Wait(Patient{Client: t.Context(), Patience: time.Minute * 61}, p.asks("a", 1))
			if err != nil || !made.Allowed || made.On[0].Rule.Name() != c.want || time.Since(began) != c.after || (made.PaidBy != "") != (c.want == "pool") {
				t.Errorf("%s: after %v the wait got %+v, %v; want an admission by %s after %v", c.name, time.Since(began), made, err, c.want, c.after)
			}
		})
	}
}
