package layer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/limittest"
)

// tryCandidate enforces the rules as before, and counts where a stricter login differs.
func tryCandidate(e weir.Engine) (*layer.Shadowed, error) {
	candidate, err := weir.ParseRule("login=3/m")
	if err != nil {
		return nil, err
	}
	return layer.Shadow(e, layer.ShadowOptions{Candidates: map[string]*weir.Rule{"login": candidate}})
}

func shadowed(t testing.TB, e weir.Engine, o layer.ShadowOptions) *layer.Shadowed {
	t.Helper()
	s, err := layer.Shadow(e, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnEngineWithACandidateIsAsWithout(t *testing.T) {
	candidate := mustRule(t, "r=1/1h")
	limittest.Run(t, func(clock func() int64) weir.Engine {
		aside := weir.NewMemory(weir.MemoryOptions{})
		return shadowed(t, weir.NewMemory(weir.MemoryOptions{Clock: clock}), layer.ShadowOptions{Engine: aside, Candidates: map[string]*weir.Rule{"r": candidate},
			Decided: func(layer.ShadowDecision) { panic("a bug of the program") }})
	})
}

func TestACandidateIsComparedAndNotEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, login := newRemote(), mustRule(t, "login=5/m")
		s, err := tryCandidate(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := takes(t, s, 7, login, "alice"); got != 5 {
			t.Errorf("%d admitted, want the 5 of the enforced limit", got)
		}
		time.Sleep(10 * time.Millisecond)
		want := layer.ShadowCounts{Rule: "login", Decisions: 7, Refusals: 4, Stricter: 2}
		if got := s.Stats(); len(got.Rules) != 1 || got.Rules[0] != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		time.Sleep(12 * time.Second) // the enforced limit admits one
		takes(t, s, 1, mustRule(t, "other=1/m"), "alice")
		if got := takes(t, s, 1, login, "alice"); got != 1 {
			t.Errorf("%d admitted, want 1", got)
		}
		time.Sleep(10 * time.Millisecond)
		if got := s.Stats(); len(got.Rules) != 1 || got.Rules[0].Stricter != 3 {
			t.Errorf("got %+v, want another that only the candidate refuses, and nothing of other rules", got)
		}
	})
}

func TestALooserCandidateAndItsReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=concurrency 1")
		var last layer.ShadowDecision
		s := shadowed(t, r, layer.ShadowOptions{Candidates: map[string]*weir.Rule{"r": mustRule(t, "r=concurrency 2 and 3/1h")},
			Decided: func(d layer.ShadowDecision) { last = d }})
		for range 2 {
			held, err := s.Reserve(t.Context(), rule.For("k", 1))
			if err != nil || !held.Decision.Allowed {
				t.Fatalf("got %v, want the slot", err)
			}
			if got, err := s.Reserve(t.Context(), rule.For("k", 1)); err != nil || got.Decision.Allowed {
				t.Errorf("got %v, want a refusal", err)
			}
			time.Sleep(10 * time.Millisecond)
			if err := held.Done(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		want := layer.ShadowCounts{Rule: "r", Decisions: 4, Refusals: 1, Looser: 1}
		if got := s.Stats(); len(got.Rules) != 1 || got.Rules[0] != want || got.Errors != 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if last.Rule != "r" || last.Key != "k" || last.Enforced.Allowed || last.Shadow.Allowed {
			t.Errorf("the last decision is %+v", last)
		}
	})
}

func TestADryRunEnforcesNothingAndFailsNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=2/1h")
		s := shadowed(t, r, layer.ShadowOptions{})
		if got := takes(t, s, 5, rule, "k"); got != 5 {
			t.Errorf("%d admitted, want all 5", got)
		}
		time.Sleep(10 * time.Millisecond)
		if got := s.Stats(); got.Rules[0].Refusals != 3 || got.Rules[0].Stricter != 3 {
			t.Errorf("got %+v, want 3 that would be refused", got)
		}
		if err := s.Reset(t.Context(), rule.For("k", 1)); err != nil {
			t.Error(err)
		}
		r.fails.Store(true)
		time.Sleep(10 * time.Millisecond)
		if got := takes(t, s, 2, rule, "k"); got != 2 {
			t.Errorf("%d admitted, want both", got)
		}
		time.Sleep(10 * time.Millisecond)
		if got := s.Stats(); got.Errors != 3 {
			t.Errorf("got %+v, want 3 errors", got)
		}
		if _, err := s.Take(t.Context(), rule.For("k", -1)); !errors.Is(err, weir.ErrRequest) {
			t.Errorf("a negative cost: got %v, want a RequestError", err)
		}
	})
}

func TestShadowsShareCallsOfTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aside, rule := newRemote(), mustRule(t, "r=100000/1h")
		s := shadowed(t, weir.NewMemory(weir.MemoryOptions{}), layer.ShadowOptions{Engine: aside, Candidates: map[string]*weir.Rule{"r": rule}})
		for range 100 {
			takes(t, s, 1, rule, "k")
			time.Sleep(time.Millisecond / 10)
		}
		time.Sleep(10 * time.Millisecond)
		if got, calls := s.Stats().Rules[0].Decisions, aside.calls.Load(); got != 100 || calls > 3 {
			t.Errorf("%d decisions aside cost %d calls, want 100 in 3 at most", got, calls)
		}
	})
}

// An engine that hangs has at most MostAside decisions wait.
func TestShadowsThatCannotBeDecidedAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aside, rule := newRemote(), mustRule(t, "r=100000/1h")
		thaw := aside.hangs()
		s := shadowed(t, weir.NewMemory(weir.MemoryOptions{}), layer.ShadowOptions{Engine: aside, Candidates: map[string]*weir.Rule{"r": rule}})
		if got := takes(t, s, 10_000, rule, "k"); got != 10_000 {
			t.Errorf("%d admitted, want all", got)
		}
		if got := s.Stats().Dropped; got < 1000 {
			t.Errorf("%d were dropped, want those above the bound", got)
		}
		thaw()
		time.Sleep(10 * time.Millisecond)
	})
}

// A candidate gets back what its own take took and still counts, and nothing if it refused the take.
func TestASettlementUndoesTheTakeOfTheShadow(t *testing.T) {
	for _, candidate := range []string{"fixed window 2/1h", "sliding window 2/1h", "sliding log 2/1h", "cycle 2/1h", "token bucket 2/1h"} {
		t.Run(candidate, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				aside, rule := newRemote(), mustRule(t, "r=100/1h")
				s := shadowed(t, weir.NewMemory(weir.MemoryOptions{}), layer.ShadowOptions{Engine: aside, Candidates: map[string]*weir.Rule{"r": mustRule(t, "r="+candidate)}})
				reserve := func() *weir.Reservation {
					held, err := s.Reserve(t.Context(), rule.For("k", 1))
					if err != nil || !held.Decision.Allowed {
						t.Fatalf("got %v, want it admitted", err)
					}
					return held
				}
				left := func(want int64, when string) {
					t.Helper()
					time.Sleep(10 * time.Millisecond)
					d, err := aside.Peek(t.Context(), mustRule(t, "r~shadow="+candidate).For("k", 1))
					if err != nil || d.Remaining != want {
						t.Errorf("%s, %d are left in the shadow, want %d (%v)", when, d.Remaining, want, err)
					}
				}
				first, second, refused := reserve(), reserve(), reserve()
				left(0, "after three takes")
				cancel(t, refused)
				left(0, "after the end of the one that the shadow refused")
				cancel(t, second)
				left(1, "after the end of the second")
				cancel(t, reserve())
				left(1, "after one that ended at once")
				time.Sleep(3 * time.Hour)
				takes(t, s, 2, rule, "k")
				cancel(t, first)
				if candidate == "token bucket 2/1h" {
					left(1, "after the late end of the first, of a bucket")
				} else {
					left(0, "after the late end of the first")
				}
			})
		})
	}
}

func cancel(t *testing.T, r *weir.Reservation) {
	t.Helper()
	if err := r.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
}
