package layer_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// probing is a call of Try.
func probing(rule *weir.Rule) weir.Call {
	return weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For("probe", 1)}}
}

func TestAStallThatMakesManyAnswersLateAtOnceIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=100000/1d")
		r.punctual = true
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow})
		for range 20 { // stalls
			r.slow.Store(int64(time.Second))
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() { takes(t, g, 1, rule, "k") })
			}
			all.Wait()
			r.slow.Store(0)
			takes(t, g, 10, rule, "k")
			time.Sleep(time.Second)
		}
		if s := g.Stats(); s.Opened != 0 || s.Failures != 20*200 {
			t.Errorf("got %+v, want 4000 late answers and no outage", s)
		}
		r.slow.Store(int64(time.Second))
		takes(t, g, 10, rule, "k")
		if s := g.Stats(); !s.Away {
			t.Errorf("got %+v after answers that were late for 100 ms, want an outage", s)
		}
		g.Close()
	})
}

func TestAnOutageIsNoHastyDeadline(t *testing.T) {
	for _, punctual := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r, rule := newRemote(), mustRule(t, "r=100000/1d")
			r.punctual = punctual
			var logged texts
			g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			r.slow.Store(int64(time.Millisecond))
			takes(t, g, 20, rule, "k")
			r.slow.Store(int64(time.Hour))
			for range 100 {
				takes(t, g, 1, rule, "k")
				time.Sleep(50 * time.Millisecond)
			}
			if s := g.Stats(); s.DeadlineTooShort || s.RoundTrip != time.Millisecond || !s.Away {
				t.Errorf("got %+v in an outage, want a round trip of 1 ms and no hasty deadline", s)
			}
			if text := strings.Join(logged.lines(), ""); strings.Contains(text, "round trips") {
				t.Errorf("the log speaks of round trips in an outage:\n%s", text)
			}
			g.Close()
		})
	}
}

func TestADeadlineThatEveryAnswerMissesIsHasty(t *testing.T) {
	for _, punctual := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r, rule := newRemote(), mustRule(t, "r=100000/1d")
			r.punctual = punctual
			r.slow.Store(int64(40 * time.Millisecond))
			g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow})
			for range 100 {
				takes(t, g, 1, rule, "k")
				time.Sleep(50 * time.Millisecond)
			}
			if s := g.Stats(); !s.DeadlineTooShort || s.RoundTrip != 40*time.Millisecond || !s.Away {
				t.Errorf("got %+v, want an engine that is away for a hasty deadline", s)
			}
			g.Close()
		})
	}
}

func TestTryNoticesAnOutageAndItsEndWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=100000/1d")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow})
		try := func(n int) (err error) {
			for range n {
				err = g.Try(t.Context(), probing(rule))
				time.Sleep(200 * time.Millisecond)
			}
			return err
		}
		if err := try(1); err != nil {
			t.Errorf("got %v from an engine that is well", err)
		}
		r.fails.Store(true)
		if err := try(5); !errors.Is(err, errAway.error) || !g.Stats().Away {
			t.Errorf("got %v and %+v after 5 failures, want the engine away", err, g.Stats())
		}
		r.fails.Store(false)
		if err := try(3); err != nil || g.Stats().Away {
			t.Errorf("got %v and %+v after 3 successes, want the engine back", err, g.Stats())
		}
		if s := g.Stats(); s.Allowed != 0 {
			t.Errorf("the policy has answered %d tries, want none", s.Allowed)
		}
	})
}

// denied is a failure that bars no decisions, like that of a wrong password.
type denied struct{ error }

func (denied) Unavailable() bool { return false }

func TestTryCountsEveryFailure(t *testing.T) {
	g := guarded(t, weir.Kit.EngineOf(func(context.Context, weir.Call) (weir.Answer, error) {
		return weir.Answer{}, denied{errors.New("WRONGPASS")}
	}, nil), layer.GuardOptions{OnFailure: layer.Allow})
	rule := mustRule(t, "r=5/m")
	takes(t, g, 10, rule, "k")
	if s := g.Stats(); s.Away {
		t.Errorf("got %+v after decisions that were denied, want the engine still asked", s)
	}
	for range 5 {
		_ = g.Try(t.Context(), probing(rule))
	}
	if s := g.Stats(); !s.Away {
		t.Errorf("got %+v after tries that were denied, want the engine away", s)
	}
	if err := g.Try(t.Context(), probing(rule)); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("got %v from a try too soon, want the last failure", err)
	}
}
