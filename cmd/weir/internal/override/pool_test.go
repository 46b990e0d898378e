package override

import (
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// Entries stand in for the limits of a floor and of the pools behind it. A block is final, and so is a ban.
func TestEntriesStandInForTheLimitsOfPools(t *testing.T) {
	table := newTable(t, "")
	chains, err := layer.Otherwise(weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }}))
	if err != nil {
		t.Fatal(err)
	}
	engine := table.Around(chains)
	floor, pool, last := rule(t, "floor=fixed window 1/366d"), rule(t, "pool=fixed window 9/366d"), rule(t, "last=fixed window 9/366d")
	ask := func(key string) weir.Request {
		second := last.For("", 1)
		first := pool.For(key, 1)
		q := floor.For(key, 1)
		first.Otherwise, q.Otherwise = &second, &first
		return q
	}
	set(t, table, engine, "", "blocked", Block)
	set(t, table, engine, "floor", "banned", "fixed window 1/366d and ban 1h after 2/1h")
	set(t, table, engine, "pool", "few", "fixed window 1/366d")
	set(t, table, engine, "pool", "none", Block)
	set(t, table, engine, "floor", "free", Allow)
	for _, c := range []struct {
		key  string
		want []string // who pays; "" for a refusal
	}{
		{"usual", []string{"floor", "pool", "pool"}},
		{"blocked", []string{"", ""}},
		{"banned", []string{"floor", "", ""}},
		{"few", []string{"floor", "pool", "last", "last"}},
		{"none", []string{"floor", ""}}, // a block of the pool ends the chain
		{"free", []string{"floor", "floor", "floor"}},
	} {
		for i, want := range c.want {
			q := ask(c.key)
			a, err := engine.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: []weir.Request{q}})
			got := ""
			if a.Decision.Allowed {
				if got = q.Rule.Name(); a.Paid != nil {
					got = a.Paid[0].Rule.Name()
				}
			}
			if err != nil || got != want {
				t.Errorf("%s, take %d: %q paid (%+v, %v), want %q", c.key, i, got, a.Decision, err, want)
			}
			if q.Otherwise.Rule != pool || q.Rule != floor {
				t.Fatal("the request of the caller was changed")
			}
		}
	}
}
