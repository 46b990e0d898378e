package override

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
)

// Limits of which one denies all are a block, in whatever form they are written: for rules of every kind, and with its end
// in each refusal.
func TestABlockIsOneInEveryForm(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 20) {
		synctest.Test(t, func(t *testing.T) {
			text := randomBlock(rand.New(rand.NewPCG(seed, 0)))
			path := filepath.Join(t.TempDir(), "weir.state.overrides")
			content := fmt.Sprintf(`[{"key":"k","limit":%q,"until":%q}]`, text, time.Now().Add(time.Hour).Format(time.RFC3339))
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			made := newTable(t, "")
			set(t, made, weir.NewMemory(weir.MemoryOptions{}), "", "k", text)
			for name, table := range map[string]*Table{"made": made, "read from a file": newTable(t, path)} {
				engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
				for _, r := range []*weir.Rule{rule(t, "a=5/m"), rule(t, "b=concurrency 2 lease 1m")} {
					if got, want := said(engine.Take(t.Context(), r.For("k", 1))), "false "+r.Name()+" k 0/0 retry 1h0m0s"; got != want {
						t.Errorf("%q, %s: got %s, want %s", text, name, got, want)
					}
				}
				if got := table.Entries(); len(got) != 1 || got[0].Limit != Block {
					t.Errorf("%q, %s: is listed as %v", text, name, got)
				}
			}
		})
	}
}

// randomBlock returns limits of which at least one denies all, with any white space.
func randomBlock(r *rand.Rand) string {
	words := strings.Fields([]string{"deny all", "deny all and 5/m", "unlimited and deny all", "fixed window 9/h and deny all and 3/s", "concurrency 5 lease 1m and deny all"}[r.IntN(5)])
	space := func() string { return strings.Repeat([]string{" ", "\t", "  "}[r.IntN(3)], 1+r.IntN(2)) }
	text := ""
	for i, word := range words {
		if i > 0 || r.IntN(2) == 0 {
			text += space()
		}
		text += word
	}
	return text + []string{"", " "}[r.IntN(2)]
}

// A refusal has the end of a block only if the call fits from then on.
func TestARefusalHasTheEndOfABlockOnlyIfOnlyBlocksRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, "")
		engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
		jobs, n := rule(t, "jobs=concurrency 2 lease 1m"), rule(t, "n=fixed window 10/h")
		set(t, table, engine, "jobs", "hk", "concurrency 5 lease 1m")
		set(t, table, engine, "jobs", "h*", Block)
		set(t, table, engine, "", "blocked", Block)
		set(t, table, engine, "n", "more", "fixed window 50/h")
		later := Entry{Rule: "n", Key: "later", Limit: Block, Until: time.Now().Add(2 * time.Hour)}
		if _, err := table.Set(t.Context(), &later, engine); err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			requests []weir.Request
			want     time.Duration
		}{
			{[]weir.Request{jobs.For("hk", 10)}, weir.Never}, // the block of h* is not in force for it
			{[]weir.Request{jobs.For("hx", 2)}, time.Hour},
			{[]weir.Request{jobs.For("hx", 10)}, weir.Never}, // also without the block
			{[]weir.Request{n.For("blocked", 1), n.For("free", 10)}, time.Hour},
			{[]weir.Request{n.For("blocked", 1), n.For("free", 100)}, weir.Never},
			{[]weir.Request{n.For("free", 100), n.For("blocked", 1)}, weir.Never},
			{[]weir.Request{n.For("blocked", 1), n.For("more", 50)}, time.Hour},
			{[]weir.Request{n.For("blocked", 1), n.For("later", 1)}, 2 * time.Hour},
			{[]weir.Request{n.For("later", 1), n.For("blocked", 1)}, 2 * time.Hour},
			{[]weir.Request{n.For("free", 11)}, weir.Never},
		} {
			d, err := engine.Take(t.Context(), c.requests...)
			if err != nil || d.Allowed || d.RetryAfter != c.want {
				t.Errorf("%d: got %+v, %v, want a refusal for %s", i, d, err, c.want)
			}
			results := make([]weir.Result, 1)
			if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, c.requests[0]), results); err != nil || len(c.requests) == 1 && results[0].Decision.RetryAfter != c.want {
				t.Errorf("%d, one of several: got %+v, %v, want a refusal for %s", i, results[0], err, c.want)
			}
		}
	})
}
