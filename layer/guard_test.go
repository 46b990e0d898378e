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
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/limittest"
	"github.com/weirflow/weir/pace"
)

var quiet = slog.New(slog.DiscardHandler)

// guarded returns a Guard around r, which ends with the test.
func guarded(t testing.TB, r weir.Engine, o layer.GuardOptions) *layer.Guarded {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet
	}
	g, err := layer.Guard(r, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func TestAGuardedEngineIsAsWithoutTheGuard(t *testing.T) {
	for _, punctual := range []bool{true, false} {
		limittest.Run(t, func(clock func() int64) weir.Engine {
			r := clockedRemote(clock)
			r.punctual = punctual
			return guarded(t, r, layer.GuardOptions{Deadline: time.Minute})
		})
	}
}

func TestEachPolicyAnswersInTimeWhileTheEngineIsAway(t *testing.T) {
	for _, policy := range []layer.Policy{layer.Deny, layer.Local, layer.Allow} {
		for _, fault := range []string{"fails", "slow", "hangs", "panics"} {
			t.Run(policy.String()+" "+fault, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { answersInTime(t, policy, fault) })
			})
		}
	}
}

func answersInTime(t *testing.T, policy layer.Policy, fault string) {
	r, rule := newRemote(), mustRule(t, "r=fixed window 10/1d")
	g := guarded(t, r, layer.GuardOptions{OnFailure: policy, Peers: 2})
	thaw, until := func() {}, 5
	switch fault {
	case "fails":
		r.fails.Store(true)
	case "slow":
		r.slow.Store(int64(time.Second))
		until = 8 // 100 ms after the first of 15 ms each
	case "hangs":
		thaw = r.hangs()
		until = 8
	case "panics":
		r.panics.Store(true)
	}
	admitted, refused, failed := 0, 0, 0
	for range 20 {
		began := time.Now()
		d, err := g.Take(t.Context(), rule.For("k", 1))
		if took := time.Since(began); took > 15*time.Millisecond {
			t.Errorf("an answer took %v, want at most 15 ms", took)
		}
		var outage *layer.OutageError
		switch {
		case errors.As(err, &outage) && weir.Unavailable(err):
			if failed++; failed > until && weir.WasCounted(err) != weir.CountedNo {
				t.Errorf("got %v, which may have been counted, for a call that the engine has not seen", err)
			}
		case err != nil:
			t.Errorf("got %v, want an OutageError that is unavailable", err)
		case d.Allowed:
			admitted++
		default:
			refused++
		}
	}
	want := map[layer.Policy][3]int{layer.Deny: {0, 0, 20}, layer.Local: {5, 15, 0}, layer.Allow: {20, 0, 0}}[policy]
	if got := [3]int{admitted, refused, failed}; got != want {
		t.Errorf("admitted, refused and failed: got %v, want %v", got, want)
	}
	if calls := r.calls.Load(); calls != int64(until) {
		t.Errorf("the engine got %d calls, want the %d until the breaker opened", calls, until)
	}
	thaw()
	synctest.Wait()
	g.Close()
	time.Sleep(time.Second)
}

func TestABreakerProbesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1000/1d")
		var mu sync.Mutex
		var changes []layer.GuardChange
		var logged texts
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			OnChange: func(c layer.GuardChange) {
				mu.Lock()
				defer mu.Unlock()
				changes = append(changes, c)
				panic("a bug of the program")
			}})
		ask := func(n int) int64 {
			before := r.calls.Load()
			takes(t, g, n, rule, "k")
			return r.calls.Load() - before
		}
		r.fails.Store(true)
		if got := ask(10); got != 5 {
			t.Errorf("the engine gets %d calls, want 5", got)
		}
		time.Sleep(199 * time.Millisecond)
		if got := ask(1); got != 0 {
			t.Errorf("the engine gets %d calls 199 ms after it went, want none", got)
		}
		time.Sleep(time.Millisecond)
		if got := ask(10); got != 1 {
			t.Errorf("the engine gets %d calls after 200 ms, want one probe", got)
		}
		r.fails.Store(false)
		for range 2 {
			time.Sleep(200 * time.Millisecond)
			if got := ask(10); got != 1 {
				t.Errorf("the engine gets %d calls, want one probe", got)
			}
		}
		time.Sleep(200 * time.Millisecond)
		if got := ask(10); got != 10 {
			t.Errorf("the engine gets %d calls after 3 successful probes, want all 10", got)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(changes) != 2 || !changes[0].Away || !errors.Is(changes[0].Cause, errAway) || changes[1].Away {
			t.Errorf("got the changes %+v, want away because of %v, and back", changes, errAway)
		}
		away, back := 0, 0
		for _, line := range logged.lines() {
			if strings.Contains(line, "is away") {
				away++
			}
			if strings.Contains(line, "is back") {
				back++
			}
		}
		if away != 1 || back != 1 {
			t.Errorf("the log says %d times that the engine is away and %d times that it is back, want once each:\n%s", away, back, logged.lines())
		}
	})
}

// Where a rule has a policy of its own, the line of an outage does not say that one policy answers all.
func TestTheLogOfAnOutageSaysThatRulesHavePolicies(t *testing.T) {
	for want, policies := range map[string]map[string]layer.Policy{
		`policy=deny cause=`: {"r": layer.Deny},
		`policy="deny, unless the rule has its own" cause=`: {"r": layer.Local},
	} {
		synctest.Test(t, func(t *testing.T) {
			var logged texts
			r, rule := newRemote(), mustRule(t, "r=5/m")
			g := guarded(t, r, layer.GuardOptions{Rules: policies, Peers: 1, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			r.fails.Store(true)
			for range 10 {
				_, _ = g.Take(t.Context(), rule.For("k", 1))
			}
			synctest.Wait()
			if text := strings.Join(logged.lines(), ""); !strings.Contains(text, want) {
				t.Errorf("the log lacks %q:\n%s", want, text)
			}
		})
	}
}

// What waits for an OnChange that hangs is bounded, and the last changes are told.
func TestAnOnChangeThatHangsIsToldTheLastChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1000000/1d")
		hang, told := make(chan struct{}), []layer.GuardChange{}
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow, OnChange: func(c layer.GuardChange) {
			<-hang
			told = append(told, c)
		}})
		for range 100 {
			for _, fails := range []bool{true, false} {
				r.fails.Store(fails)
				for range 20 {
					takes(t, g, 1, rule, "k")
					time.Sleep(50 * time.Millisecond)
				}
			}
		}
		close(hang)
		synctest.Wait()
		if opened := g.Stats().Opened; opened != 100 || len(told) < 2 || len(told) > 65 {
			t.Fatalf("the engine went %d times, and OnChange was told %d changes, want 100 and at most 65", opened, len(told))
		}
		for i, c := range told {
			if c.Away != (i%2 == 0) {
				t.Errorf("change %d says away: %v, want away and back in turn", i, c.Away)
			}
		}
		if last := told[len(told)-1]; last.Away || time.Since(last.At) > time.Second {
			t.Errorf("the last change is %+v, want the last return of the engine", last)
		}
	})
}

func TestABreakerOpensWhenHalfOfTheCallsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1000/1d")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow})
		for i := range 30 {
			r.fails.Store(i%2 == 0)
			takes(t, g, 1, rule, "k")
			if away := g.Stats().Away; away != (i >= 20) {
				t.Fatalf("after %d calls, half of them failed: away is %v", i+1, away)
			}
		}
	})
}

// The engine never sees the calls that it has not failed.
func TestBadRequestsAndCallersWithoutTimeOpenNoBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1000/1d")
		g := guarded(t, r, layer.GuardOptions{})
		r.slow.Store(int64(5 * time.Millisecond))
		for range 10 {
			if _, err := g.Take(t.Context(), rule.For("k", -1)); !errors.Is(err, weir.ErrRequest) {
				t.Errorf("a negative cost: got %v, want a RequestError", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := g.Take(ctx, rule.For("k", 1)); err == nil {
				t.Error("a caller with a millisecond got an answer after 5")
			}
			cancel()
		}
		if s := g.Stats(); s.Away || s.Failures != 0 {
			t.Errorf("got %+v, want no failure", s)
		}
	})
}

// No policy admits what no engine could decide, whatever the fault.
func TestABadRequestIsOneDuringAnOutage(t *testing.T) {
	rule := mustRule(t, "r=10/1h and concurrency 2")
	for _, policy := range []layer.Policy{layer.Deny, layer.Local, layer.Allow} {
		for _, counted := range []weir.Counted{weir.CountedNo, weir.CountedUnknown} {
			e := weir.Kit.EngineOf(func(context.Context, weir.Call) (weir.Answer, error) {
				return weir.Answer{}, away{errors.New("connection reset"), counted}
			}, nil)
			g := guarded(t, e, layer.GuardOptions{OnFailure: policy, Peers: 1})
			for range 8 { // before and after the breaker opens
				for _, call := range badCalls(rule) {
					if _, err := g.Do(t.Context(), call); !errors.Is(err, weir.ErrRequest) {
						t.Fatalf("%s under %s: got %v, want a RequestError", call.Op, policy, err)
					}
				}
				results := make([]weir.Result, 2)
				if err := g.Each(t.Context(), []weir.Call{{Op: weir.OpReset, Requests: []weir.Request{rule.For("k", 1)}}, {Op: weir.OpTake}}, results); err != nil {
					t.Fatal(err)
				}
				for i, r := range results {
					if !errors.Is(r.Err, weir.ErrRequest) {
						t.Fatalf("call %d of a batch under %s: got %+v, want a RequestError", i, policy, r)
					}
				}
			}
		}
	}
}

// badCalls are calls that no engine can make. The rule cannot be booked.
func badCalls(rule *weir.Rule) (calls []weir.Call) {
	good := []weir.Request{rule.For("k", 1)}
	for _, op := range []weir.Op{weir.OpTake, weir.OpTakeUpTo, weir.OpReserve, weir.OpReserveAhead, weir.OpPeek, weir.OpRecord, weir.OpReturn, weir.OpReset} {
		for _, q := range []weir.Request{{Key: "k", Cost: 1}, {Rule: new(weir.Rule), Key: "k"}, {Rule: rule, Key: strings.Repeat("k", weir.MaxKey+1)}} {
			calls = append(calls, weir.Call{Op: op, Lease: 7, Most: 1, Requests: append(good[:1:1], q)})
		}
		calls = append(calls, weir.Call{Op: op, Requests: good, Identity: strings.Repeat("i", enginekit.MaxIdentity+1)})
	}
	return append(calls, weir.Call{Op: weir.OpTakeUpTo, Most: -1, Requests: good}, weir.Call{Op: weir.OpReserveAhead, Requests: good},
		weir.Call{Op: weir.OpEach + 1, Requests: good}, weir.Call{Op: weir.OpEach, Each: &weir.Batch{Calls: make([]weir.Call, 2), Results: make([]weir.Result, 1)}})
}

func TestACallerThatHasLeftDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=10/1d")
		g := guarded(t, r, layer.GuardOptions{})
		defer r.hangs()()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		for _, op := range []weir.Op{weir.OpTake, weir.OpPeek, weir.OpRecord, weir.OpReturn, weir.OpReset, weir.OpReserve} {
			if _, err := g.Do(ctx, weir.Call{Op: op, Requests: []weir.Request{rule.For("k", 1)}}); !errors.Is(err, context.Canceled) || weir.WasCounted(err) != weir.CountedNo {
				t.Errorf("%s: got %v, want that of the context, uncounted", op, err)
			}
		}
		if err := g.Each(ctx, enginekit.Calls(weir.OpTake, rule.For("k", 1)), make([]weir.Result, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("each: got %v, want that of the context", err)
		}
		if took := time.Since(began); took != 0 || r.calls.Load() != 0 {
			t.Errorf("callers that had left waited %v for %d calls of the engine, want none", took, r.calls.Load())
		}
	})
}

func TestACallFollowsTheStrictestPolicyOfItsRules(t *testing.T) {
	r := newRemote()
	r.fails.Store(true)
	g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Deny, Peers: 3, Rules: map[string]layer.Policy{"local": layer.Local, "free": layer.Allow}})
	deny, local, free := mustRule(t, "deny=9/1d"), mustRule(t, "local=9/1d"), mustRule(t, "free=9/1d")
	for _, tt := range []struct {
		rules []*weir.Rule
		want  int // admitted of 10; -1 is an error
	}{
		{[]*weir.Rule{free}, 10}, {[]*weir.Rule{local}, 3}, {[]*weir.Rule{deny}, -1},
		{[]*weir.Rule{free, local}, 0}, {[]*weir.Rule{free, deny}, -1}, {[]*weir.Rule{local, deny}, -1},
	} {
		got := 0
		for range 10 {
			var requests []weir.Request
			for _, rule := range tt.rules {
				requests = append(requests, rule.For("k", 1))
			}
			d, err := g.Take(t.Context(), requests...)
			if err != nil {
				got = -1
				break
			}
			if d.Allowed {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%v: admitted %d, want %d", tt.rules, got, tt.want)
		}
	}
}

func TestLocalDecidesByTheShareOfEachProcess(t *testing.T) {
	for text, want := range map[string]int{
		"10/1d": 3, "2/1d": 1, "token bucket 10/1d burst 30": 10, "fixed window 10/1d": 3, "sliding window 10/1d": 3,
		"sliding log 10/1d": 3, "rate gate 10/1d": 3, "cycle 10/1d": 3, "leaky bucket 10/1d queue 29 nodelay 29": 10,
		"concurrency 7": 2, "unlimited": 50, "deny all": 0, "10/1d and 6/1d": 2,
	} {
		r := newRemote()
		r.fails.Store(true)
		peers := 3
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, PeersNow: func() int {
			if peers == 0 {
				panic("no member list")
			}
			return peers
		}})
		rule := mustRule(t, "r="+text)
		if got := takes(t, g, 25, rule, "a"); got != min(want, 25) {
			t.Errorf("%s: one of 3 processes admits %d, want %d", text, got, want)
		}
		peers = 0
		if got := takes(t, g, 25, rule, "b"); got != min(want, 25) {
			t.Errorf("%s: one of 3 processes admits %d while the number is unknown, want %d", text, got, want)
		}
	}
}

func TestWhatWasGrantedLocallyIsRecorded(t *testing.T) {
	for _, tt := range []struct {
		text  string
		pause time.Duration // between the grants and the end of the outage
		want  int64         // units used at the engine
	}{
		{"100/1d", 0, 30},
		{"10/1s and 100/1d", 0, 10}, // the first is used up
		{"100/1d and 90/1d", 0, 30},
		{"fixed window 100/1d", time.Minute, 30},
		{"fixed window 100/1m", 2 * time.Minute, 0}, // the window has ended
		{"first window 100/1m", 59 * time.Second, 30},
		{"first window 100/1m", time.Minute, 0}, // as long after the first grant
		{"cycle 100/1m", 2 * time.Minute, 0},
		{"sliding log 100/1d", time.Minute, 30},
		{"rate gate 100/1d", time.Minute, 30},
		{"100/10m", 5 * time.Minute, 30}, // half of the share of 50 has come back
	} {
		synctest.Test(t, func(t *testing.T) {
			r, rule := newRemote(), mustRule(t, "r="+tt.text)
			g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 2})
			r.fails.Store(true)
			granted := int64(takes(t, g, 30, rule, "k"))
			want := min(tt.want, granted)
			time.Sleep(tt.pause)
			if tt.text == "100/10m" {
				want = granted - 25
			}
			r.fails.Store(false)
			before := remaining(t, r.memory, rule, "k")
			time.Sleep(2 * time.Second)
			if got := before - remaining(t, r.memory, rule, "k"); tt.text != "10/1s and 100/1d" && got != want {
				t.Errorf("%s, %v later: the engine has recorded %d, want %d of %d", tt.text, tt.pause, got, want, granted)
			}
			if s := g.Stats(); s.Owed != 0 || s.Queued != 0 || s.Away {
				t.Errorf("%s: got %+v, want nothing owed", tt.text, s)
			}
			g.Close()
		})
	}
}

func TestUnitsThatComeBackDuringAnOutageAreOwedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 100/366d")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
		r.fails.Store(true)
		takes(t, g, 50, rule, "k")
		if _, err := g.Return(t.Context(), rule.For("k", 30)); err != nil {
			t.Error(err)
		}
		r.fails.Store(false)
		time.Sleep(2 * time.Second)
		if got := remaining(t, r.memory, rule, "k"); got != 80 {
			t.Errorf("the engine has %d left after 50 takes and a return of 30, want 80", got)
		}
		g.Close()
	})
}

// A process that joins or leaves during an outage changes the local rate, and not what was granted.
func TestADebtIsTheSameAfterTheNumberOfPeersHasChanged(t *testing.T) {
	for _, peers := range [][2]int{{1, 4}, {4, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r, rule := newRemote(), mustRule(t, "r=100/1d")
			now := peers[0]
			g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, PeersNow: func() int { return now }})
			r.fails.Store(true)
			takes(t, g, 20, rule, "k")
			now = peers[1]
			takes(t, g, 1, rule, "other")
			r.fails.Store(false)
			time.Sleep(2 * time.Second)
			if got := remaining(t, r.memory, rule, "k"); got != 80 {
				t.Errorf("%d, then %d peers: the engine has %d left, want 80", peers[0], peers[1], got)
			}
			g.Close()
		})
	}
}

// Each limit gets what it is owed itself: the fast one has recovered, the slow one has not.
func TestLimitsAlikeAreOwedTheirOwnUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=20/1s and 1000/1d")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
		r.fails.Store(true)
		for range 5 {
			takes(t, g, 20, rule, "k")
			time.Sleep(time.Second)
		}
		r.fails.Store(false)
		time.Sleep(2 * time.Second)
		fast, slow := mustRule(t, "r=20/1s"), rule
		if got := remaining(t, r.memory, fast, "k"); got != 20 {
			t.Errorf("the fast limit has %d left, want all 20", got)
		}
		if _, err := r.memory.Record(t.Context(), fast.For("k", 0)); err != nil {
			t.Fatal(err)
		}
		d, err := r.memory.Take(t.Context(), slow.For("k", 20))
		if err != nil || !d.Allowed {
			t.Fatalf("got %+v and %v, want 20 admitted", d, err)
		}
		time.Sleep(time.Second)
		admitted := 100
		for ; takes(t, r.memory, 20, rule, "k") == 20; admitted += 20 {
			time.Sleep(time.Second)
		}
		if admitted < 960 || admitted > 1000 {
			t.Errorf("%d were admitted in all, want about 1000: the slow limit knows what was granted locally", admitted)
		}
		g.Close()
	})
}

// A batch that is lost leaves nothing to record, and the engine is still looked for.
func TestTheEngineComesBackAfterABatchWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 100/1d")
		g := guarded(t, weir.Kit.EngineOf(func(ctx context.Context, call weir.Call) (weir.Answer, error) {
			if call.Op == weir.OpEach {
				r.fails.Store(true)
				time.Sleep(2 * time.Second)
			}
			return r.do(ctx, call)
		}, nil), layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
		r.fails.Store(true)
		takes(t, g, 10, rule, "k")
		r.fails.Store(false)
		for g.Stats().Lost == 0 {
			_, _ = g.Peek(t.Context(), rule.For("k", 1)) // which fails while the batch is on its way
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		r.fails.Store(false)
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			_, _ = g.Peek(t.Context(), rule.For("k", 1))
		}
		if s := g.Stats(); s.Away || s.Opened != 2 {
			t.Errorf("got %+v, want two outages, and the engine back", s)
		}
		g.Close()
	})
}

func TestLocalStatesLiveOnBetweenOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 10/1d")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 2})
		for outage, want := range []int{5, 0} {
			r.fails.Store(true)
			if got := takes(t, g, 20, rule, "k"); got != want {
				t.Errorf("outage %d: %d admitted, want %d", outage+1, got, want)
			}
			r.fails.Store(false)
			time.Sleep(2 * time.Second)
			takes(t, g, 1, rule, "other")
			if g.Stats().Away {
				time.Sleep(2 * time.Second)
				takes(t, g, 3, rule, "other")
			}
		}
		if got := remaining(t, r.memory, rule, "k"); got != 5 {
			t.Errorf("the engine has %d left, want 5: each unit is recorded once", got)
		}
		g.Close()
	})
}

func TestReservationsOfTheEngineAreSettledWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=10/1d and concurrency 2")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
		one, err := g.Reserve(t.Context(), rule.For("k", 1))
		if err != nil || !one.Decision.Allowed {
			t.Fatalf("got %v, want a reservation", err)
		}
		more := mustRule(t, "more=10/1d")
		two, err := g.Reserve(t.Context(), more.For("k", 2))
		if err != nil || !two.Decision.Allowed {
			t.Fatalf("got %v, want a reservation", err)
		}
		r.fails.Store(true)
		for range 5 {
			_, _ = g.Peek(t.Context(), rule.For("k", 1))
		}
		if err := one.Done(t.Context()); err != nil {
			t.Errorf("Done during the outage: got %v, want it queued", err)
		}
		if err := two.Settle(t.Context(), 5); err != nil {
			t.Errorf("Settle during the outage: got %v, want it queued", err)
		}
		if got := g.Stats().Queued; got != 2 {
			t.Errorf("%d settlements wait, want 2", got)
		}
		r.fails.Store(false)
		time.Sleep(2 * time.Second)
		if got := remaining(t, r.memory, mustRule(t, "r=concurrency 2"), "k"); got != 2 {
			t.Errorf("%d slots are free, want both", got)
		}
		if got := remaining(t, r.memory, more, "k"); got != 5 {
			t.Errorf("%d units are left, want 5", got)
		}
		g.Close()
	})
}

// renewing is a remote engine that renews slots.
type renewing struct{ *remote }

func (r renewing) Renew(ctx context.Context, slots weir.Call) (held bool, err error) {
	if _, err := r.do(ctx, weir.Call{Op: weir.OpPeek, Requests: slots.Requests}); err != nil {
		return false, err
	}
	return r.memory.Renew(context.Background(), slots)
}

func TestRenewalsHaveTheDeadlineOfDecisions(t *testing.T) {
	for _, punctual := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r, rule := newRemote(), mustRule(t, "r=concurrency 2 lease 1m")
			r.punctual = punctual
			g := guarded(t, renewing{r}, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
			slots := weir.Call{Requests: []weir.Request{rule.For("k", 1)}, Lease: 7}
			taken := slots
			taken.Op = weir.OpTake
			if _, err := g.Do(t.Context(), taken); err != nil {
				t.Fatal(err)
			}
			if held, err := g.Renew(t.Context(), slots); err != nil || !held {
				t.Errorf("a renewal: got %v and %v, want the slots held", held, err)
			}
			r.slow.Store(int64(time.Second))
			for i := range 12 {
				began := time.Now()
				held, err := g.Renew(t.Context(), slots)
				if took := time.Since(began); held || !weir.Unavailable(err) || took > 15*time.Millisecond || i > 8 && took > 0 {
					t.Errorf("renewal %d of an engine that is away: got %v and %v after %v, want an outage within 15 ms, and at once in the end", i, held, err, took)
				}
			}
			r.slow.Store(0)
			for range 3 {
				time.Sleep(300 * time.Millisecond)
				if held, err := g.Renew(t.Context(), slots); err != nil || !held {
					t.Errorf("a renewal of an engine that is back: got %v and %v, want the slots held", held, err)
				}
			}
			if _, err := g.Renew(t.Context(), weir.Call{Requests: slots.Requests, Lease: 8}); err != nil || g.Stats().Away {
				t.Errorf("a renewal of slots that nobody holds: got %v, want no error, and the engine back", err)
			}
			g.Close()
		})
	}
}

func TestReservationsGivenHereAreSettledHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=concurrency 2")
		units := mustRule(t, "u=fixed window 4/1d")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 2})
		r.fails.Store(true)
		for range 3 {
			held, err := g.Reserve(t.Context(), rule.For("k", 1), units.For("k", 2))
			if err != nil || !held.Decision.Allowed {
				t.Fatalf("got %+v and %v, want the share of one slot and two units", held.Decision, err)
			}
			if d, err := g.Take(t.Context(), units.For("k", 1)); err != nil || d.Allowed {
				t.Errorf("got %+v and %v, want the share used up", d, err)
			}
			if err := held.Cancel(t.Context()); err != nil {
				t.Errorf("Cancel: %v", err)
			}
		}
		r.fails.Store(false)
		time.Sleep(2 * time.Second)
		if got := remaining(t, r.memory, units, "k"); got != 4 {
			t.Errorf("the engine has %d units left, want all 4: everything was cancelled", got)
		}
		g.Close()
	})
}

func TestAtMost64CallsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=concurrency 1000")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow})
		thaw := r.hangs()
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() {
				began := time.Now()
				_, err := g.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For("k", 1)}, Lease: weir.Kit.NewLease()})
				if took := time.Since(began); err != nil || took > 15*time.Millisecond {
					t.Errorf("got %v after %v, want an answer within 15 ms", err, took)
				}
			})
		}
		all.Wait()
		if got := g.Stats().Hanging; got != 64 || r.calls.Load() != 64 {
			t.Errorf("%d calls hang and the engine got %d, want 64", got, r.calls.Load())
		}
		thaw()
		time.Sleep(2 * time.Second)
		if got := g.Stats().Hanging; got != 0 {
			t.Errorf("%d calls hang after the engine answered, want none", got)
		}
		if got := remaining(t, r.memory, rule, "k"); got != 1000 {
			t.Errorf("%d slots are free, want all: what was answered too late is given back", got)
		}
		g.Close()
	})
}

func TestLateAnswersAreUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, slow, window := newRemote(), mustRule(t, "slow=100/1d"), mustRule(t, "window=fixed window 100/1d")
		g := guarded(t, r, layer.GuardOptions{})
		r.trip.Store(int64(time.Second))
		for _, rule := range []*weir.Rule{slow, window} {
			if _, err := g.Take(t.Context(), rule.For("k", 10)); err == nil {
				t.Error("an answer after a second came in time")
			}
		}
		time.Sleep(3 * time.Second)
		if got := remaining(t, r.memory, slow, "k"); got != 99 {
			t.Errorf("the bucket has %d left, want 99: one unit may have been refilled", got)
		}
		if got := remaining(t, r.memory, window, "k"); got != 90 {
			t.Errorf("the window has %d left, want 90: it may be another window", got)
		}
	})
}

func TestAWaitingCallerKeepsItsPlaceThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=1/1s")
		g := guarded(t, r, layer.GuardOptions{})
		q, err := pace.NewQueue(g, pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		takes(t, g, 1, rule, "k")
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		thaw := r.hangs()
		for i := range 4 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				if i == 3 {
					ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second)
				}
				defer cancel()
				began := time.Now()
				_, err := q.Wait(ctx, rule.For("k", 1))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case i == 3:
					if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 4*time.Second {
						t.Errorf("the caller with 4 s got %v after %v", err, time.Since(began))
					}
				case err != nil:
					t.Errorf("caller %d: %v", i, err)
				default:
					order = append(order, i)
				}
			})
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		thaw()
		all.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Errorf("the callers went in the order %v, want 0 1 2", order)
		}
		g.Close()
		time.Sleep(time.Second)
	})
}

func TestAHastyDeadlineIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=100000/1d")
		r.trip.Store(int64(6 * time.Millisecond))
		var logged texts
		g := guarded(t, r, layer.GuardOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		takes(t, g, 8, rule, "k")
		s := g.Stats()
		if len(logged.lines()) != 1 || !strings.Contains(logged.lines()[0], "below three round trips") {
			t.Errorf("the log says %q, want one line about the deadline", logged.lines())
		}
		if !s.DeadlineTooShort || s.RoundTrip != 6*time.Millisecond || s.Failures != 0 {
			t.Errorf("got %+v, want a hasty deadline for trips of 6 ms", s)
		}
	})
}

func TestEachCallOfABatchFollowsItsOwnPolicy(t *testing.T) {
	r := newRemote()
	r.fails.Store(true)
	g := guarded(t, r, layer.GuardOptions{Peers: 1, Rules: map[string]layer.Policy{"local": layer.Local, "free": layer.Allow}})
	deny, local, free := mustRule(t, "deny=9/1d"), mustRule(t, "local=1/1d"), mustRule(t, "free=9/1d")
	for range 8 { // before and after the breaker opens
		results := make([]weir.Result, 3)
		calls := enginekit.Calls(weir.OpTake, deny.For("k", 1), local.For("k", 0), free.For("k", 20))
		if err := g.Each(t.Context(), calls, results); err != nil {
			t.Fatal(err)
		}
		if !weir.Unavailable(results[0].Err) || !results[1].Decision.Allowed || !results[2].Decision.Allowed {
			t.Errorf("got %+v, want an outage and two admissions", results)
		}
	}
}

func TestAHealthyCallThroughAGuardAllocatesNothing(t *testing.T) {
	g, rule := healthy(t), mustRule(t, "r=1000000/1s burst 1000000000")
	call := weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For("k", 1)}}
	if got := testing.AllocsPerRun(1000, func() { _, _ = g.Do(context.Background(), call) }); got != 0 {
		t.Errorf("a healthy call allocates %v times, want never", got)
	}
}

// healthy returns a Guard over an engine that bounds its calls itself.
func healthy(t testing.TB) *layer.Guarded {
	return guarded(t, bounded{weir.NewMemory(weir.MemoryOptions{})}, layer.GuardOptions{})
}

type bounded struct{ weir.Engine }

func (bounded) KeepsDeadlines() bool { return true }

func BenchmarkGuard(b *testing.B) {
	rule := mustRule(b, "r=1000000/1s burst 1000000000")
	call := weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For("k", 1)}, Within: 20 * time.Millisecond}
	for name, e := range map[string]weir.Engine{"bare": bounded{weir.NewMemory(weir.MemoryOptions{})}, "guarded": healthy(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = e.Do(context.Background(), call)
			}
		})
	}
}

// A call of many decisions fails in its results. They are the cause of an outage, too.
func TestTheCauseOfAnOutageIsKnownFromDecisionsInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := weir.Kit.EngineOf(func(_ context.Context, call weir.Call) (weir.Answer, error) {
			for i := range call.Each.Results {
				call.Each.Results[i].Err = errAway
			}
			return weir.Answer{}, nil
		}, func(...*weir.Rule) error { return nil })
		var cause error
		g, err := layer.Guard(fails, layer.GuardOptions{Logger: slog.New(slog.DiscardHandler), OnChange: func(c layer.GuardChange) { cause = c.Cause }})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		one := mustRule(t, "r=5/m").For("k", 1)
		for range 5 {
			_ = g.Each(t.Context(), []weir.Call{{Op: weir.OpTake, Requests: []weir.Request{one}}}, make([]weir.Result, 1))
		}
		synctest.Wait()
		if !errors.Is(cause, errAway) {
			t.Errorf("got the cause %v, want %v", cause, errAway)
		}
	})
}
