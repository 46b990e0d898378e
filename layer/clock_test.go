package layer_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// The tests of this file move the clock of the engine while no real time passes, as tests of a program do.

// TestLayersDecideByTheClockOfTheEngine asks an engine with the layers of ForNetwork and one without, at random instants.
func TestLayersDecideByTheClockOfTheEngine(t *testing.T) {
	for _, text := range []string{"r=10/s", "r=fixed window 7/s", "r=sliding window 9/2s", "r=rate gate 4/s"} {
		random := rand.New(rand.NewPCG(39, 14))
		now := int64(1_700_000_000_123_456_789)
		clock := func() int64 { return now }
		layered, end, err := layer.ForNetwork(clockedRemote(clock), layer.NetworkOptions{Guard: layer.GuardOptions{Deadline: time.Minute, Logger: quiet}})
		if err != nil {
			t.Fatal(err)
		}
		bare, rule := weir.NewMemory(weir.MemoryOptions{Clock: clock}), mustRule(t, text)
		for op := range 2000 {
			now += random.Int64N(int64(200 * time.Millisecond))
			q := rule.For("k", 1+random.Int64N(3))
			want, err := bare.Take(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got, err := layered.Take(t.Context(), q)
			if err != nil || got.Allowed != want.Allowed || got.RetryAfter > want.RetryAfter {
				t.Fatalf("%s: take %d of cost %d: got %+v and error %v, want %+v", text, op, q.Cost, got, err, want)
			}
		}
		end()
	}
}

func TestARefusalIsNotRememberedBeforeItsInstant(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	r, rule := clockedRemote(func() int64 { return now }), mustRule(t, "r=fixed window 1/s")
	d := denying(t, r)
	takes(t, d, 2, rule, "k")
	before := r.calls.Load()
	now -= int64(time.Hour)
	if takes(t, d, 1, rule, "k"); r.calls.Load() == before {
		t.Error("a clock that was set back by an hour keeps a refusal, want the engine asked")
	}
}

// TestABlockEndsByTheClockOfTheEngine has a stock when the window ends.
func TestABlockEndsByTheClockOfTheEngine(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	r, rule := clockedRemote(func() int64 { return now }), mustRule(t, "r=fixed window 100/m")
	l := prefetched(t, r)
	for range 40 {
		takes(t, l, 1, rule, "k")
	}
	if l.Stats().Out == 0 {
		t.Fatal("nothing is taken ahead")
	}
	now += int64(time.Minute)
	if got := takes(t, l, 300, rule, "k"); got != 100 {
		t.Errorf("%d takes were admitted in the next window, want 100", got)
	}
}

func TestTheLocalPolicyDecidesByTheClockOfTheEngine(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	r, rule := clockedRemote(func() int64 { return now }), mustRule(t, "r=fixed window 5/m")
	g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 1})
	r.fails.Store(true)
	for range 3 {
		if got := takes(t, g, 20, rule, "k"); got != 5 {
			t.Errorf("%d takes were admitted here in a minute, want 5", got)
		}
		now += int64(time.Minute)
	}
}
