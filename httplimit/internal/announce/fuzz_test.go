package announce_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/httplimit/internal/announce"
)

const year = 366 * 24 * time.Hour

// FuzzRead sends any text in each field, and checks that what is read is within bounds.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"Retry-After: 5", "Retry-After: Thu, 01 Jan 2026 12:00:30 GMT", `RateLimit-Policy: "burst";q=100;w=60;qu="requests";pk=:YQ==:, "day";q=1000;w=86400` + "\n" + `RateLimit: "burst";r=50;t=30`,
		"RateLimit: limit=100, remaining=50, reset=5", "RateLimit-Limit: 100;w=21600\nRateLimit-Remaining: 76;w=21600\nRateLimit-Reset: 1767268805\nRateLimit-Policy: 100;w=60",
		"X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 598.0\nX-RateLimit-Reset: 1767268864.57\nX-RateLimit-Reset-After: 64.57", "X-Shopify-Shop-Api-Call-Limit: 32/40",
		"x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 6m0s", "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-01-01T12:00:02Z",
		"Date: Thu, 01 Jan 2026 12:00:00 GMT\nX-Ratelimit-Used: -1\nX-Ratelimit-Remaining: 9999999999999999999", "retry-after-ms: 1500.5",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h := http.Header{}
		for _, line := range strings.Split(text, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		a := announce.Read(h, now)
		if a.RetryAfter < announce.Unknown || a.RetryAfter > year || a.LeastPause < 0 || a.LeastPause > time.Hour || len(a.Quotas) > announce.MaxQuotas {
			t.Errorf("Read of %q: %+v is out of bounds", text, a)
		}
		for _, q := range a.Quotas {
			if q.Limit < 0 || q.Window < 0 || q.Window > year || q.Remaining < announce.Unknown || q.Reset < announce.Unknown || q.Reset > year {
				t.Errorf("Read of %q: %+v is out of bounds", text, q)
			}
		}
	})
}
