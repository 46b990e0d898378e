package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/simulate"
)

// replayOf replays limits on JSON lines whose key is the field k.
func replayOf(t *testing.T, log string, limits ...string) replay.Report {
	t.Helper()
	key, err := replay.ParseKey("k")
	if err != nil {
		t.Fatal(err)
	}
	traffic := replay.NewTraffic(nil, key)
	if err := traffic.ReadLog("log", strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	var candidates []replay.Candidate
	for _, text := range limits {
		c, err := replay.ParseCandidate(text)
		if err != nil {
			t.Fatal(err)
		}
		candidates = append(candidates, c)
	}
	report, err := traffic.Replay(candidates, replay.Options{Top: MostRows, Timelines: MostTimelines})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func pageOf(t *testing.T, c Content) string {
	t.Helper()
	content, err := Bytes(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// lines are n lines at once of each key.
func lines(n int, keys ...string) string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(strings.Repeat(fmt.Sprintf(`{"ts":1800000000,"k":%q}`+"\n", k), n))
	}
	return b.String()
}

func TestKeysAreMaskedUnlessNamesAreAskedFor(t *testing.T) {
	keys := []string{"203.0.113.77", "/private/path", "Secret-Agent/1.0"}
	r := Replay{Logs: []string{"/home/me/access.log"}, Key: "k", Result: replayOf(t, lines(5, keys...), "fixed window 2/m", "fixed window 3/m")}
	masked, masker := pageOf(t, r), newNames(false)
	r.Names = true
	shown := pageOf(t, r)
	for _, k := range keys {
		if strings.Contains(masked, k) {
			t.Errorf("the page shows %q", k)
		}
		if !strings.Contains(shown, "<bdi>"+k+"</bdi>") {
			t.Errorf("with names the page does not show %q", k)
		}
		mask := masker.key(k)
		if masker.key(k) != mask || newNames(false).key(k) == mask || masker.key(k+" ") == mask {
			t.Errorf("the mask of %q is not the same within a page, or is the same in another", k)
		}
	}
	if strings.Contains(masked, "/home/me") {
		t.Error("the page shows the folder of the log")
	}
}

func TestTheHeadlineIsInWords(t *testing.T) {
	log := lines(5, "a", "b") + lines(1, "c")
	for _, test := range []struct {
		limits []string
		want   string
	}{
		{[]string{"fixed window 4/m"}, "With fixed window 4/m, 2 of 3 keys would have been refused, 18.18% of requests."},
		{[]string{"fixed window 5/m"}, "With fixed window 5/m, nothing would have been refused: all 11 requests of 3 keys would have been admitted."},
		{[]string{"fixed window 4/m", "fixed window 5/m"}, "With fixed window 4/m, 2 of 3 keys would have been refused; with fixed window 5/m, 0."},
		{[]string{"fixed window 4/m", "fixed window 5/m", "fixed window 1/m"}, "Of 3 limits, fixed window 5/m would have refused least, 0.00% of requests, and fixed window 1/m most, 72.73%."},
	} {
		if page := pageOf(t, Replay{Key: "k", Result: replayOf(t, log, test.limits...)}); !strings.Contains(page, "<h1>"+test.want+"</h1>") {
			t.Errorf("%q: the headline is not %q", test.limits, test.want)
		}
	}
}

// A log without a line that counts, and limits with many, long and refused keys, are pages too.
func TestAPageHasItsBound(t *testing.T) {
	var keys []string
	for i := range 300 {
		keys = append(keys, strings.Repeat("<&\"", 60)+fmt.Sprint(i))
	}
	limits := []string{}
	for i := range 12 {
		limits = append(limits, fmt.Sprintf("fixed window %d/h", i+1))
	}
	large := pageOf(t, Replay{Key: "k", Names: true, Result: replayOf(t, lines(20, keys...), limits...)})
	if len(large) > mostBytes || !strings.Contains(large, "Tables have at most") || !strings.Contains(large, "the 6 limits of 12 that refuse most") {
		t.Errorf("the page has %d bytes, want %d at most and what was cut", len(large), mostBytes)
	}
	empty := pageOf(t, Replay{Key: "k", Result: replayOf(t, "", "fixed window 1/h")})
	if !strings.Contains(empty, "all 0 requests of 0 keys") {
		t.Error("the page of an empty log does not say so")
	}
}

// The bound that a distribution shows is reached by a caller that takes all it may, and never exceeded.
func TestTheMostWithinAWindowIsExact(t *testing.T) {
	for seed := range randtest.Seeds(t, 40, 10) {
		random := rand.New(rand.NewPCG(seed, 0))
		rate, burst := weir.Rate{Count: 1 + random.Int64N(20), Period: time.Duration(1+random.Int64N(20)) * time.Second}, 1+random.Int64N(20)
		window := time.Duration(1+random.Int64N(30)) * time.Second
		limit := weir.TokenBucket{Rate: rate, Burst: burst}
		now := int64(1e18)
		limiter, err := weir.NewWith(limit, weir.Options{Clock: func() int64 { return now }})
		if err != nil {
			t.Fatal(err)
		}
		taken, end := int64(0), now+int64(window)
		for now <= end {
			d := limiter.Take(1)
			if d.Allowed {
				taken++
			} else {
				now += int64(d.RetryAfter)
			}
		}
		if got, ok := mostWithin(limit.String(), window); !ok || got != taken {
			t.Errorf("seed %d: %s admits %d within any %s, want %d", seed, limit, got, window, taken)
		}
	}
}

func TestASimulationIsAPage(t *testing.T) {
	pattern, err := simulate.ParsePattern("poisson 20/s from 10 clients")
	if err != nil {
		t.Fatal(err)
	}
	result, err := pattern.Compare([]string{"token bucket 10/s burst 5"}, simulate.Scenario{Length: time.Minute, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	page := pageOf(t, Comparison{Result: result, How: "one limit for all clients"})
	for _, want := range []string{"<h1>Token bucket 10/s burst 5 refuses ", "of 10 clients in 1m. One limit for all clients.", "\"elapsed\":true"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
