package layer_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

func afterRule(t testing.TB, text string) *weir.Rule {
	t.Helper()
	r, err := mustRule(t, text).ChargeAfter()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tell records a cost of the key k.
func tell(t testing.TB, e weir.Engine, r *weir.Rule, cost int64, identity string) error {
	t.Helper()
	_, err := e.Do(t.Context(), weir.Call{Op: weir.OpRecord, Requests: []weir.Request{r.For("k", cost)}, Identity: identity})
	return err
}

// Work that was done cannot be refused, so even a Guard that denies keeps its cost.
func TestACostOfWorkThatWasDoneIsKeptUnderEveryPolicy(t *testing.T) {
	for _, policy := range []layer.Policy{layer.Deny, layer.Local, layer.Allow} {
		for _, text := range []string{"token bucket 100/1d", "fixed window 100/366d", "sliding window 100/366d", "quota 100/year", "cycle 100/366d", "token bucket 100/1d and fixed window 1000/366d"} {
			synctest.Test(t, func(t *testing.T) {
				r, rule := newRemote(), afterRule(t, "r="+text)
				g := guarded(t, r, layer.GuardOptions{OnFailure: policy, Peers: 1})
				r.fails.Store(true)
				for range 10 {
					if err := tell(t, g, rule, 70, ""); err != nil {
						t.Fatalf("%v, %s: a cost was refused: %v", policy, text, err)
					}
				}
				r.fails.Store(false)
				time.Sleep(2 * time.Second)
				if d, err := r.memory.Return(t.Context(), rule.For("k", 600)); err != nil || d.Remaining != 0 {
					t.Errorf("%v, %s: 600 of 700 units given back leave %+v, %v, want 0", policy, text, d, err)
				}
				if d, err := r.memory.Return(t.Context(), rule.For("k", 50)); err != nil || d.Remaining != 50 {
					t.Errorf("%v, %s: 650 of 700 units given back leave %+v, %v, want 50", policy, text, d, err)
				}
				if s := g.Stats(); s.Owed != 0 || s.Lost != 0 {
					t.Errorf("%v, %s: got %+v, want nothing owed or lost", policy, text, s)
				}
				g.Close()
			})
		}
	}
}

func TestUnderLocalACostOfWorkThatWasDoneKeepsOthersOut(t *testing.T) {
	r, rule := newRemote(), afterRule(t, "r=token bucket 100/1d")
	g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
	r.fails.Store(true)
	if err := tell(t, g, rule, 500, ""); err != nil {
		t.Fatal(err)
	}
	if got := takes(t, g, 1, rule, "k"); got != 0 {
		t.Error("a key in debt was admitted")
	}
}

// A record whose answer was lost is made again by its identity, and so counts once, or is lost after the time that engines know it.
func TestARecordWithoutAnAnswerCountsOnce(t *testing.T) {
	for _, tt := range []struct {
		identity string
		outage   time.Duration
		lost     uint64
	}{{"one", time.Second, 0}, {"one", 2 * time.Minute, 30}, {"", time.Second, 30}} {
		t.Run(fmt.Sprint(tt.identity, tt.outage), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, rule := newRemote(), afterRule(t, "r=fixed window 100/366d")
				g := guarded(t, r, layer.GuardOptions{})
				r.loses.Store(true)
				err := tell(t, g, rule, 30, tt.identity)
				if _, away := errors.AsType[*layer.OutageError](err); away != (tt.identity == "") {
					t.Errorf("got the error %v", err)
				}
				r.loses.Store(false)
				r.fails.Store(true)
				time.Sleep(tt.outage)
				r.fails.Store(false)
				time.Sleep(2 * time.Second)
				if got := 100 - remaining(t, r.memory, rule, "k"); got != 30 {
					t.Errorf("%d units were counted, want 30", got)
				}
				if s := g.Stats(); s.Lost != tt.lost || s.Queued != 0 {
					t.Errorf("got %+v, want %d units lost", s, tt.lost)
				}
				g.Close()
			})
		})
	}
}

// The bound of a Guard holds for costs, and what does not fit is counted as lost.
func TestCostsAboveTheKeysOfAGuardAreLost(t *testing.T) {
	r, rule := newRemote(), afterRule(t, "r=fixed window 100/366d")
	g := guarded(t, r, layer.GuardOptions{MaxKeys: 3})
	r.fails.Store(true)
	for i := range 5 {
		if _, err := g.Record(t.Context(), rule.For(key(i), 7)); err != nil {
			t.Error(err)
		}
	}
	if s := g.Stats(); s.Owed != 3 || s.Lost != 14 {
		t.Errorf("got %+v, want 3 keys owed and 14 units lost", s)
	}
	g.Close()
}

// A stock would hide a debt, so nothing is taken ahead for a rule that charges after the work.
func TestNothingIsTakenAheadForARuleThatChargesAfter(t *testing.T) {
	r, rule := newRemote(), afterRule(t, "r=token bucket 1000/1d")
	g := guarded(t, r, layer.GuardOptions{})
	l, err := layer.Prefetch(g, layer.PrefetchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	takes(t, l, 50, rule, "k")
	if err := tell(t, l, rule, 5000, ""); err != nil {
		t.Fatal(err)
	}
	if got := takes(t, l, 1, rule, "k"); got != 0 {
		t.Error("a key in debt was admitted from a stock")
	}
	if d, err := l.Peek(t.Context(), rule.For("k", 1)); err != nil || d.Allowed {
		t.Errorf("a key in debt has room: %+v, %v", d, err)
	}
}
