package otherwisetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// PaidOnce proves that a repeated call with an Identity gets its first answer on an engine that recognises identities, though the
// first rule would admit it by then.
func PaidOnce(t *testing.T, below weir.Engine) {
	t.Helper()
	e, err := layer.Otherwise(below)
	if err != nil {
		t.Fatal(err)
	}
	for i, call := range []weir.Call{
		{Op: weir.OpTake}, {Op: weir.OpTake, Lease: 7}, {Op: weir.OpTakeUpTo, Most: 2}, {Op: weir.OpReserve}, {Op: weir.OpEach},
	} {
		r := &repeated{T: t, e: e, floor: rule(t, "floor", 2), second: rule(t, "second", 3), pool: rule(t, "pool", 5), key: fmt.Sprintf("%d, %v", i, call.Op)}
		r.play(call)
	}
}

func rule(t *testing.T, name string, n int64) *weir.Rule {
	t.Helper()
	r, err := weir.NewRule(name, weir.FixedWindow{Rate: weir.Per(n, 24*time.Hour)}, weir.Concurrency{Slots: n, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type repeated struct {
	*testing.T
	e                   weir.Engine
	floor, second, pool *weir.Rule
	key                 string
}

// play has the pool pay after the others have refused, clears these, and repeats the call.
func (r *repeated) play(call weir.Call) {
	r.Helper()
	r.clear()
	pool := r.pool.For(r.key, 2)
	second := r.second.For(r.key, 2)
	second.Otherwise = &pool
	q := r.floor.For(r.key, 2)
	q.Otherwise = &second
	call.Requests = []weir.Request{q}
	r.spend(r.floor, 1)
	r.spend(r.second, 2)
	first := r.make(call, "one")
	if !first.Decision.Allowed || !slices.Equal(first.Paid, []weir.Request{pool}) {
		r.Fatalf("%s: got %+v paid by %s, want it paid by the pool", r.key, first.Decision, textOf(first.Paid))
	}
	r.reset(r.floor, r.second)
	r.want(call, "one", first)
	left := 5 - 2*max(first.Times, 1)
	r.left(2, 3, left)
	r.spend(r.floor, 1)
	r.spend(r.second, 2)
	r.spend(r.pool, left)
	refused := r.make(call, "two")
	if refused.Decision.Allowed {
		r.Fatalf("%s: admitted by an empty pool: %+v", r.key, refused)
	}
	r.reset(r.floor, r.second, r.pool)
	r.want(call, "two", refused)
	r.left(2, 3, 5)
	admitted := r.make(call, "three")
	if !admitted.Decision.Allowed || admitted.Paid != nil {
		r.Fatalf("%s: got %+v paid by %s, want it paid by the floor", r.key, admitted.Decision, textOf(admitted.Paid))
	}
	r.spend(r.second, 1)
	r.want(call, "three", admitted)
	r.left(0, 2, 5)
	r.clear()
}

// make makes a call, alone or as the only one of an OpEach.
func (r *repeated) make(call weir.Call, identity string) weir.Answer {
	r.Helper()
	call.Identity = r.key + identity
	if call.Op != weir.OpEach {
		a, err := r.e.Do(context.Background(), call)
		if err != nil {
			r.Fatalf("%s %s: %v", r.key, identity, err)
		}
		return a
	}
	call.Op = weir.OpTake
	results := make([]weir.Result, 1)
	if err := r.e.Each(context.Background(), []weir.Call{call}, results); err != nil || results[0].Err != nil {
		r.Fatalf("%s %s: %v, %v", r.key, identity, err, results[0].Err)
	}
	return weir.Answer{Decision: results[0].Decision, Paid: results[0].Paid, Taken: results[0].Taken}
}

// want repeats a call, and wants its first answer.
func (r *repeated) want(call weir.Call, identity string, first weir.Answer) {
	r.Helper()
	for range 2 {
		again := r.make(call, identity)
		if again.Decision != first.Decision || again.Times != first.Times || !slices.Equal(again.Paid, first.Paid) || !slices.Equal(again.Taken, first.Taken) {
			r.Errorf("%s %s: repeated, got\n%+v paid by %s, want the first answer\n%+v paid by %s", r.key, identity, again.Decision, textOf(again.Paid), first.Decision, textOf(first.Paid))
		}
	}
}

// left wants a number of units left of each rule.
func (r *repeated) left(want ...int64) {
	r.Helper()
	for i, rule := range []*weir.Rule{r.floor, r.second, r.pool} {
		if d, err := r.e.Peek(context.Background(), rule.For(r.key, 0)); err != nil || d.Remaining != want[i] {
			r.Errorf("%s: %d of %s are left (%v), want %d", r.key, d.Remaining, rule.Name(), err, want[i])
		}
	}
}

func (r *repeated) spend(rule *weir.Rule, n int64) {
	r.Helper()
	if a, err := r.e.Do(context.Background(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For(r.key, n)}, Lease: weir.Kit.NewLease()}); err != nil || !a.Decision.Allowed {
		r.Fatalf("%s: %d of %s: %+v, %v", r.key, n, rule.Name(), a.Decision, err)
	}
}

func (r *repeated) clear() { r.reset(r.floor, r.second, r.pool) }

func (r *repeated) reset(rules ...*weir.Rule) {
	r.Helper()
	for _, rule := range rules {
		if err := r.e.Reset(context.Background(), rule.For(r.key, 0)); err != nil {
			r.Fatal(err)
		}
	}
}
