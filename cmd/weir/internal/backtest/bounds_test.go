package backtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/randtest"
)

// known is a request of which everything is known.
type known struct{ rules.Attributes }

func (known) Lacks(string) bool { return false }

func configOf(t testing.TB, text string) *rules.Config {
	t.Helper()
	c, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(text)})
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	return c
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

var limits = []string{"2/s", "token bucket 3/10s burst 5", "token bucket 1/s burst 8", "leaky", "fixed window 4/10s", "fixed window 3/1s", "sliding window 5/10s",
	"sliding log 4/10s", "sliding log 3/5s gap 100ms", "cycle 5/7s", "rate gate 2/s", "quota 9/day", "concurrency 3 lease 4s", "[4/s, fixed window 20/30s]", "sliding log 3/4s count denied"}

// randomRules returns rules that decide together.
func randomRules(random *rand.Rand) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 1 + random.IntN(3) {
		limit := pick(random, limits...)
		match := pick(random, "any", "any", "{path: /a}", "{path: /b}", "{method: POST}")
		if limit == "leaky" || strings.HasSuffix(limit, "count denied") { // which stand alone
			limit = "token bucket 5/3s"
		}
		fmt.Fprintf(&b, "  - {name: r%d, match: %s, limit: %s%s%s}\n", i, match, limit,
			pick(random, "", ", key: client", ", key: [client, path]"), pick(random, "", "", ", cost: 2"))
	}
	return b.String()
}

// aloneRules returns one rule whose limit stands alone.
func aloneRules(random *rand.Rand) string {
	return fmt.Sprintf("rules: [{name: r, match: any, key: client, limit: %s}]\n", pick(random, "leaky bucket 2/s queue 3", "sliding log 3/4s count denied"))
}

// happened is a request at the instant at which a daemon decided it, with the bounds that a log gives.
type happened struct {
	at, from, to int64
	client       string
	attributes   rules.Attributes
}

func randomRequests(random *rand.Rand) (all []happened) {
	start := time.Date(2026, 11, 27, 23, 59, 30, 0, time.UTC).UnixNano()
	step := pick(random, time.Millisecond, 100*time.Millisecond, time.Second)
	longest := pick(random, 0, step, 3*time.Second)
	for now := start; len(all) < 120; {
		now += random.Int64N(int64(pick(random, 50*time.Millisecond, 400*time.Millisecond, time.Second, 20*time.Second)))
		client := fmt.Sprintf("192.0.2.%d", random.IntN(3))
		end := now + random.Int64N(int64(longest)+1)
		stamp := end - end%int64(step)
		took := end - now
		all = append(all, happened{now, stamp - took, stamp + int64(step), client, rules.Attributes{
			"client": client, "path": pick(random, "/a", "/b", "/c"), "method": pick(random, "GET", "POST")}})
	}
	return all
}

// decisions returns what the rules decide on requests that are stamped exactly, or within their bounds, and which are sure.
func decisions(t testing.TB, config *rules.Config, requests []happened, exact bool) (allowed, sure []bool) {
	t.Helper()
	traffic := New(File{"weir.yaml", config})
	ordered := make([]int, len(requests))
	for i := range requests {
		ordered[i] = i
	}
	if !exact { // as a log has them: by their stamps
		slices.SortStableFunc(ordered, func(a, b int) int { return int(requests[a].to - requests[b].to) })
	}
	for _, i := range ordered {
		r := requests[i]
		line := Line{At: r.at, From: r.at, To: r.at, Client: []byte(r.client), Request: known{r.attributes}}
		if !exact {
			line.At, line.From, line.To = r.from, r.from, r.to
		}
		if err := traffic.Add(&line); err != nil {
			t.Fatal(err)
		}
	}
	before := slices.Clone(traffic.events)
	traffic.sort()
	allowed, sure = make([]bool, len(requests)), make([]bool, len(requests))
	place := make([]int, 0, len(requests)) // of the sorted events
	used := map[int]bool{}
	for _, e := range traffic.events {
		for i, b := range before {
			if b == e && !used[i] {
				used[i] = true
				place = append(place, ordered[i])
				break
			}
		}
	}
	r, err := traffic.decide(0, func() {}, func(event int, _ outcome, d decision) {
		allowed[place[event]], sure[place[event]] = d.Allowed, true
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := traffic.unsure(r, func(event int, _ outcome) { sure[place[event]] = false }); err != nil {
		t.Fatal(err)
	}
	return allowed, sure
}

// What is sure is what a daemon decided that saw the requests at their true instants.
func TestSureDecisionsAreThoseOfADaemon(t *testing.T) {
	total, open := 0, 0
	for seed := range randtest.Seeds(t, 400, 100) {
		random := randtest.New(seed)
		text := randomRules(random)
		if random.IntN(5) == 0 {
			text = aloneRules(random)
		}
		config := configOf(t, text)
		requests := randomRequests(random)
		want, _ := decisions(t, config, requests, true)
		got, sure := decisions(t, config, requests, false)
		for i := range requests {
			total++
			if !sure[i] {
				open++
			} else if got[i] != want[i] {
				t.Errorf("request %d at %v, within %v: got %v, want %v\n%s", i, time.Unix(0, requests[i].at).UTC(),
					time.Duration(requests[i].to-requests[i].from), got[i], want[i], text)
			}
		}
	}
	t.Logf("%d of %d decisions are unsure", open, total)
	if open*10 > total*8 || open == 0 {
		t.Errorf("%d of %d decisions are unsure", open, total)
	}
}
