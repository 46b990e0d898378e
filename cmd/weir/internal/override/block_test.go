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
