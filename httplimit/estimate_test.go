package httplimit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
)

func newEstimate(t *testing.T) *front.Estimate {
	t.Helper()
	e, err := front.NewEstimate(front.EstimateOptions{Percent: 95, Max: 60})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What a request takes before its handler runs is learnt from what the handlers of earlier ones have settled.
func TestARequestTakesWhatTheLastOnesOfItsKeyCost(t *testing.T) {
	engine, rule, e := httplimittest.NewClock(start).Engine(), mustRule(t, "tokens=fixed window 1000/366d"), newEstimate(t)
	var taken, cost int64
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		d, err := engine.Peek(r.Context(), rule.For("192.0.2.1", 0))
		if err != nil {
			t.Error(err)
		}
		taken -= d.Remaining
		switch cost {
		case -1: // it does not say
		case -2:
			panic("a bug")
		default:
			_ = httplimit.Settle(r.Context(), "tokens", cost)
		}
	})
	h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Rule: rule, Estimate: e, Settled: true}}}, handler)
	request := func(of int64) int64 {
		d, err := engine.Peek(t.Context(), rule.For("192.0.2.1", 0))
		if err != nil {
			t.Fatal(err)
		}
		taken, cost = d.Remaining, of
		func() {
			defer func() { _ = recover() }()
			get(h, alice)
		}()
		return taken
	}
	for i, of := range []int64{-1, -2, 0} {
		if got := request(of); got != 60 {
			t.Errorf("request %d took %d, want the most of 60", i, got)
		}
	}
	for i := range int64(20) {
		if got := request(11 + i); got != 60 {
			t.Errorf("after %d costs a request took %d, want the most of 60", i, got)
		}
	}
	if got := request(-1); got != 29 { // the 19th of 11 to 30
		t.Errorf("a request took %d, want 29", got)
	}
}

func TestAnEstimateWithoutTrueCostsIsRefused(t *testing.T) {
	for want, rule := range map[string]httplimit.Rule{
		"estimate learns true costs, and the rule has none: set After or Settled":                         {Limit: "a=10/h", Estimate: newEstimate(t)},
		"estimate is of units that a request uses, and a=token bucket 10/h and concurrency 5 holds slots": {Limit: "a=10/h and concurrency 5", Estimate: newEstimate(t), Settled: true},
	} {
		if _, err := httplimit.New(httplimit.Options{Rules: []httplimit.Rule{rule}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
