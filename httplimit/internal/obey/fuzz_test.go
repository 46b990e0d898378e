package obey

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/httplimit/internal/announce"
)

// FuzzRefusal sends any fields with a refusal, and checks that the next request waits at least as long as they say,
// and that every wait for a time ends.
func FuzzRefusal(f *testing.F) {
	for _, number := range []string{"0", "1", "-1", "0.5", "31622400", "31622401", "9223372036", "9223372037", "1767268805", "999999999999999", "9223372036854775807", "1e400", "NaN", "Inf", "2562047h47m16.854775807s", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		for _, field := range []string{"Retry-After: #", "Retry-After-Ms: #", "X-Ratelimit-Remaining: 0\nX-Ratelimit-Reset: #", "X-Ratelimit-Remaining: 0\nX-Ratelimit-Reset-After: #",
			"Ratelimit: limit=1, remaining=0, reset=#", "Ratelimit-Policy: \"a\";q=#;w=#\nRatelimit: \"a\";r=#;t=#", "X-Shopify-Shop-Api-Call-Limit: #/#", "X-Ratelimit-Remaining-Tokens: #\nX-Ratelimit-Reset-Tokens: #", "X-Ratelimit-Used: #\nX-Ratelimit-Remaining: #"} {
			f.Add(strings.ReplaceAll(field, "#", number), int64(0), int64(0))
		}
	}
	f.Add("Retry-After: 5", int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add("Retry-After: 5", int64(math.MinInt64), int64(time.Minute))
	f.Fuzz(func(t *testing.T, text string, gap, maxPause int64) {
		h := http.Header{}
		for _, line := range strings.Split(text, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		c := &Config{MaxPause: time.Duration(max(maxPause, 0)), Spread: func(d time.Duration) time.Duration { return d / 2 }}
		a := announce.Read(h, start)
		s := State{}
		ticket := s.Start(start, Need{Gap: time.Duration(gap)})
		s.Answer(c, &ticket, start, Refused, a)
		s.End(ticket, nil)
		v := s.Wait(start, Need{Gap: time.Duration(gap)})
		least := max(c.bounded(a.RetryAfter, Never), time.Duration(min(gap, math.MaxInt64-1)))
		if v.Wait <= 0 || v.Wait < least {
			t.Errorf("after %q, with a gap of %v: a request waits for %v, want %v at least", text, time.Duration(gap), v.Wait, least)
		}
		if v.Wait == Never {
			t.Errorf("after %q, with a gap of %v: a request waits for an answer (%s), and none is to come", text, time.Duration(gap), v.Reason)
		}
	})
}
