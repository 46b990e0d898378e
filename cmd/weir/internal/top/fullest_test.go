package top_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/layer"
)

// watched is a memory engine whose decisions are samples, and that is peeked at beside them.
type watched struct {
	weir.Engine
	keys  *top.Keys
	peeks int // requests
}

func watch(t *testing.T, away func() bool) *watched {
	t.Helper()
	w := &watched{keys: top.New()}
	below := weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		if call.Op == weir.OpEach {
			w.peeks += len(call.Each.Calls)
		}
		return next(ctx, call)
	})
	var err error
	if w.Engine, err = layer.Observe(below, layer.ObserveOptions{Decided: func(_ context.Context, o layer.Observation) { w.keys.Sample(o) }}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	go w.keys.Peek(ctx, below, away)
	return w
}

func present() bool { return false }

// take makes calls of several rules.
func (w *watched) take(t *testing.T, calls int, requests ...weir.Request) {
	t.Helper()
	for range calls {
		if d, err := w.Take(t.Context(), requests...); err != nil || !d.Allowed {
			t.Fatalf("got %+v, %v, want an admission", d, err)
		}
	}
}

func texts(keys []top.Full) string {
	var all []string
	for _, k := range keys {
		all = append(all, fmt.Sprintf("%s %s %d/%d", k.Rule, k.Key, k.Used, k.Limit))
	}
	return strings.Join(all, ", ")
}

// A rule that matches and never binds is seen before it refuses: its takes, and how full its keys are.
func TestARuleThatDoesNotBindShowsItsTakesAndItsFullestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, present)
		binds, other := mustRule(t, "binds=fixed window 100000/d"), mustRule(t, "other=fixed window 1000000/d")
		w.take(t, 400, binds.For("all", 1), other.For("alice", 1))
		w.take(t, 200, binds.For("all", 1), other.For("bob", 1))
		time.Sleep(time.Minute)
		if got := w.keys.Beside(); got["binds"] != 0 || got["other"] != 600 {
			t.Errorf("got %v calls in which another rule bound, want 600 of other", got)
		}
		if got := texts(w.keys.Fullest("other", 20)); got != "other alice 400/1000000, other bob 200/1000000" {
			t.Errorf("got %q of the rule that does not bind", got)
		}
		if got := texts(w.keys.Fullest("binds", 20)); got != "binds all 600/100000" {
			t.Errorf("got %q of the rule that binds", got)
		}
		if got := w.keys.Fullest("", 1); len(got) != 1 || got[0].Rule != "binds" {
			t.Errorf("the fullest of all is %+v, want that of binds", got)
		}
	})
}

// The engine has at most one per cent more calls, however long nobody takes and however many keys there are.
func TestPeeksAreAtMostOneInAHundredCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, present)
		calls, binds := 0, mustRule(t, "binds=fixed window 100000/d")
		var others []*weir.Rule
		for i := range 5 {
			others = append(others, mustRule(t, fmt.Sprintf("other%d=fixed window 1000000/d", i)))
		}
		for second := range 300 {
			for i := range 1 + second*7%50 {
				w.take(t, 1, binds.For("all", 1), others[i%5].For(fmt.Sprint(i%40), 1), others[(i+1)%5].For(fmt.Sprint(i%17), 1))
				calls++
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		if w.peeks == 0 || w.peeks*100 > calls {
			t.Errorf("%d peeks beside %d calls, want some and 1 %% at most", w.peeks, calls)
		}
	})
}

// A key that has not been used for a while is not shown with what it once had, and one that is reset neither.
func TestAKeyIsForgottenWhenItsLimitIsWholeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, present)
		r := mustRule(t, "r=fixed window 10/m")
		w.take(t, 3, r.For("alice", 1))
		if got := texts(w.keys.Fullest("r", 20)); got != "r alice 3/10" {
			t.Errorf("got %q", got)
		}
		time.Sleep(time.Minute + time.Second)
		if got := texts(w.keys.Fullest("r", 20)); got != "" {
			t.Errorf("after the window: got %q, want none", got)
		}
		day := mustRule(t, "day=fixed window 1000/d")
		w.take(t, 200, day.For("bob", 1))
		if err := w.Reset(t.Context(), day.For("bob", 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := texts(w.keys.Fullest("day", 20)); got != "" {
			t.Errorf("after a reset: got %q, want none", got)
		}
	})
}

// A rule keeps its twenty fullest keys. Those with long names are cut, and never peeked at.
func TestFullestKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, present)
		r := mustRule(t, "r=fixed window 1000/d")
		for i := range 60 {
			w.take(t, 1, r.For(fmt.Sprintf("k%02d", i), int64(1+i*7%60)))
		}
		got := w.keys.Fullest("r", 100)
		if len(got) != 20 || got[0].Used != 60 || got[19].Used != 41 {
			t.Errorf("got %s, want the twenty of 60 to 41 units", texts(got))
		}
		w.take(t, 1, r.For(strings.Repeat("x", 4000), 100))
		if got = w.keys.Fullest("r", 1); !got[0].Cut || len(got[0].Key) != 256 || got[0].Used != 100 {
			t.Errorf("got %+v, want the beginning of the long key", got[0])
		}
	})
}

// Nobody looks at an engine that is away, and a blocked or exempt key has no limit that it could use up.
func TestNothingIsPeekedAtWhileTheEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, func() bool { return true })
		binds, other := mustRule(t, "binds=fixed window 100000/d"), mustRule(t, "other=fixed window 1000000/d")
		w.take(t, 500, binds.For("all", 1), other.For("alice", 1))
		time.Sleep(time.Hour)
		if w.peeks != 0 {
			t.Errorf("%d peeks at an engine that is away", w.peeks)
		}
		free := mustRule(t, "free=unlimited")
		w.take(t, 5, free.For("alice", 1))
		w.keys.Sample(layer.Observation{Op: weir.OpTake, Rule: "free", Key: "alice", Err: errors.New("away"), Requests: []weir.Request{free.For("alice", 1)}})
		if got := texts(w.keys.Fullest("free", 20)); got != "" {
			t.Errorf("got %q of a key without a limit", got)
		}
	})
}
