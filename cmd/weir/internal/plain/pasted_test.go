package plain

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

var pastedTexts = []struct{ text, limit, page string }{
	{"limit_req zone=one burst=5", "", "nginx"},
	{"limit_req zone=one burst=5 nodelay;", "", "nginx"},
	{"limit_req_zone $binary_remote_addr zone=one:10m rate=1r/s;", "leaky bucket 1/s", "nginx"},
	{"limit_req_zone $binary_remote_addr zone=one:10m rate=30r/m; limit_req zone=one burst=5 delay=2;", "leaky bucket 30/m queue 5 nodelay 2", "nginx"},
	{"limitForPeriod 10 limitRefreshPeriod 1ms", "cycle 10/ms", "resilience4j"},
	{".limitForPeriod(10).limitRefreshPeriod(Duration.ofMillis(1))", "cycle 10/ms", "resilience4j"},
	{"limit-for-period: 10\nlimit-refresh-period: 1s", "cycle 10/s", "resilience4j"},
	{"RateLimiter.create(5)", "bursty 5/s over 1s", "guava"},
	{"RateLimiter limiter = RateLimiter.create(2.50);", "bursty 25/10s over 1s", "guava"},
	{"RateLimiter.create(5.0, 4, TimeUnit.SECONDS)", "warm up 5/s over 4s cold 3", "guava"},
	{"RateLimiter.create(5, Duration.ofSeconds(4))", "warm up 5/s over 4s cold 3", "guava"},
	{"RateGate(2, TimeSpan.FromSeconds(1))", "rate gate 2/s", "rategate"},
	{"using (var gate = new RateGate(2, TimeSpan.FromMilliseconds(500)))", "rate gate 2/500ms", "rategate"},
	{"CL.THROTTLE user123 15 30 60", "token bucket 30/m burst 16", "redis-cell"},
	{"cl.throttle user123 0 1 10 1", "token bucket 1/10s burst 1", "redis-cell"},
	{"interval 100ms", "rate gate 1/100ms", "tokio"},
	{"tokio::time::interval(Duration::from_millis(100))", "rate gate 1/100ms", "tokio"},
	{"rate.NewLimiter(10, 20)", "token bucket 10/s burst 20", "x-time-rate"},
	{"200KB/s", "token bucket 200000/s", "rategate"},
	{"200 KiB/s", "token bucket 204800/s", "rategate"},
}

func TestAPastedTextOfAnotherLimiterIsKnown(t *testing.T) {
	for _, c := range pastedTexts {
		_, err := weir.ParseLimit(c.text)
		if err == nil {
			t.Fatalf("%s: is a limit", c.text)
		}
		_, hints, _ := Told(LimitError("check", err, LimitForms))
		if c.limit != "" && !slices.Contains(hints, "did you mean '"+c.limit+"'?") {
			t.Errorf("%s: got the hints %q, want %s", c.text, hints, c.limit)
		}
		if len(hints) == 0 || hints[len(hints)-1] != "docs/from/"+c.page+".md compares the two" || slices.Contains(hints, LimitForms[0]) {
			t.Errorf("%s: got the hints %q, want its page, %s, and no list of limits", c.text, hints, c.page)
		}
		if _, err := os.Stat("../../../../docs/from/" + c.page + ".md"); err != nil {
			t.Error(err)
		}
	}
}

// A hint is a limit, whatever the numbers and the rest of the text are.
func TestAHintForAPastedTextIsALimit(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 12))
	numbers := []string{"0", "1", "007", "2.5", "1000000001", "9007199254740993", "99999999999999999999", "-1", "", "1e9", "60"}
	for range 20_000 {
		text := pastedTexts[random.IntN(len(pastedTexts))].text
		for range 1 + random.IntN(3) {
			at := random.IntN(len(text) + 1)
			text = text[:at] + numbers[random.IntN(len(numbers))] + text[min(len(text), at+random.IntN(3)):]
		}
		for _, hint := range pastedHints(text) {
			limit, found := strings.CutPrefix(hint, "did you mean '")
			if limit = strings.TrimSuffix(limit, "'?"); !found {
				continue
			}
			if _, err := weir.ParseLimits(limit); err != nil {
				t.Fatalf("%q: the hint %q is no limit: %v", text, limit, err)
			}
		}
	}
}

func TestAPastedTextThatIsUnclearGetsNoLimit(t *testing.T) {
	for _, text := range []string{"10Mbps", "1.5MB/s", "200KB/m", "interval", "RateGate(2)", "RateLimiter.create(0)", "CL.THROTTLE user123 15 30", "RateGate(2, TimeSpan.FromDays(400))"} {
		if hints := pastedHints(text); hints != nil {
			t.Errorf("%s: got %q, want no hint", text, hints)
		}
	}
}
