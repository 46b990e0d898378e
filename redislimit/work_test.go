package redislimit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// A call reads at most as many entries as its time allows, however many decisions wait: long logs go in several calls,
// and short states share one.
func TestACallIsBoundedByTheEntriesThatItReads(t *testing.T) {
	var seen seenCalls
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{Observe: seen.observe})
	for _, tt := range []struct {
		limit weir.Limit
		most  int // keys of a call
	}{
		{weir.TokenBucket{Rate: weir.PerHour(100)}, 100},
		{weir.SlidingLog{Rate: weir.PerHour(100)}, 100},
		{weir.SlidingLog{Rate: weir.PerHour(MaxLog)}, 2},
		{weir.Concurrency{Slots: MaxSlots, Lease: time.Hour}, 13},
	} {
		rule, err := weir.NewRule("r", tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, keys := range []int{100, 1} {
			calls, results := make([]weir.Call, 100), make([]weir.Result, 100)
			for i := range calls {
				calls[i] = weir.Call{Lease: uint64(i + 1), Requests: []weir.Request{rule.For(fmt.Sprint("k", i%keys), 1)}}
			}
			first := len(seen.seen)
			if err := engine.Each(t.Context(), calls, results); err != nil {
				t.Fatal(err)
			}
			least := (min(keys, 100) + tt.most - 1) / tt.most
			if n := len(seen.seen) - first; n < least {
				t.Errorf("%v: 100 decisions on %d keys in %d calls, want at least %d", tt.limit, keys, n, least)
			}
			for _, call := range seen.seen[first:] {
				if call.Keys > tt.most {
					t.Errorf("%v: a call of %d keys, want at most %d", tt.limit, call.Keys, tt.most)
				}
			}
			if n := len(seen.seen) - first; keys == 1 && n > 4 {
				t.Errorf("%v: 100 decisions on one key in %d calls, want them to share its state", tt.limit, n)
			}
		}
	}
}

// A rule of which one decision would read too much is refused by Check, and a call by an error that counts nothing.
func TestADecisionThatWouldReadTooMuchIsRefused(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	long := func(n int) (limits []weir.Limit) {
		for i := range n {
			limits = append(limits, weir.RateGate{Rate: weir.Per(MaxLog, time.Hour+time.Duration(i)*time.Second)})
		}
		return limits
	}
	good, err := weir.NewRule("good", long(3)...)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := weir.NewRule("bad", long(4)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Check(good); err != nil {
		t.Errorf("Check of three long gates: %v", err)
	}
	var limit *weir.LimitError
	if err := engine.Check(bad); !errors.As(err, &limit) || limit.Code != weir.CodeEngine {
		t.Errorf("Check of four long gates: got %v, want a *weir.LimitError of the engine", err)
	}
	var request *weir.RequestError
	if _, err := engine.Take(t.Context(), good.For("a", 1), good.For("b", 1)); !errors.As(err, &request) {
		t.Errorf("Take of six long gates: got %v, want a *weir.RequestError", err)
	}
	if d, err := engine.Take(t.Context(), good.For("a", 1)); err != nil || d.Remaining != MaxLog-1 {
		t.Errorf("Take of three long gates: got %+v and %v, want the first unit", d, err)
	}
}
