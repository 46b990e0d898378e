package backtest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// roomy are limits that some keys of randomCrowd reach and others do not, though most have more units in all than fit at once.
var roomy = []string{"token bucket 5/s burst 20", "2/s", "fixed window 20/10s", "sliding window 12/5s", "sliding log 15/5s", "cycle 14/7s", "rate gate 12/s",
	"quota 150/day", "[9/s, fixed window 30/10s]", "concurrency 30 lease 4s"}

// randomCrowd returns a Traffic of one rule whose requests may have come at any instant within their bounds.
func randomCrowd(t *testing.T, random *rand.Rand) *Traffic {
	text := fmt.Sprintf("rules: [{name: r, match: any, key: client, limit: %s}, {name: s, match: {path: /a}, limit: %s}]\n", pick(random, roomy...), pick(random, roomy...))
	traffic := New(File{text, configOf(t, text)})
	spread := int64(pick(random, 0, time.Millisecond, time.Second, 20*time.Second))
	pause := pick(random, 300*time.Millisecond, time.Second, 4*time.Second)
	for now := time.Date(2026, 11, 27, 23, 59, 0, 0, time.UTC).UnixNano(); len(traffic.events) < 400; {
		if now += random.Int64N(int64(pause)); random.IntN(50) == 0 {
			now -= now % int64(10*time.Second) // a log is not in order, and windows begin here
		}
		client := fmt.Sprintf("192.0.2.%d", min(random.IntN(8), random.IntN(8)))
		line := Line{At: now, From: now - random.Int64N(spread+1), To: now + random.Int64N(spread+1), Client: []byte(client),
			Request: known{map[string]string{"client": client, "path": pick(random, "/a", "/b", "/b")}}}
		if err := traffic.Add(&line); err != nil {
			t.Fatal(err)
		}
	}
	traffic.sort()
	return traffic
}

// Requests that need no engine are admitted by one, wherever in their bounds all requests came.
func TestAnEngineAdmitsWhatNeedsNone(t *testing.T) {
	quiet, crowded, refused := 0, 0, 0
	for seed := range randtest.Seeds(t, 400, 100) {
		random := randtest.New(seed)
		traffic := randomCrowd(t, random)
		keys := traffic.newKeyring(0)
		for i := range keys.keys {
			if k := &keys.keys[i]; k.never && k.total > k.facts.capacity {
				crowded++
			}
		}
		instants, order := make([]int64, len(traffic.events)), make([]int, len(traffic.events))
		for i, e := range traffic.events {
			instants[i], order[i] = e.from()+random.Int64N(e.to()-e.from()), i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(instants[a], instants[b]) })
		var now int64
		engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }, MaxKeys: math.MaxInt32})
		for _, i := range order {
			now = instants[i]
			number := traffic.numbers[0][i]
			o := keys.outcomes.of(number)
			d, err := keys.decide(&o, engine, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			if !d.Allowed {
				refused++
			}
			if keys.quiet[number] {
				if quiet++; !d.Allowed {
					t.Errorf("request %d at %v needs no engine, and one refuses it\n%s", i, time.Unix(0, now).UTC(), keys.name)
				}
			}
		}
	}
	t.Logf("%d need no engine, %d keys have more requests than fit at once and refuse none, %d are refused", quiet, crowded, refused)
	if quiet == 0 || crowded == 0 || refused == 0 {
		t.Error("want some of each")
	}
}
