package announce_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/httplimit/internal/announce"
)

// now is 1767268800 seconds after the epoch.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const none = announce.Unknown

// fields reads "Name: value" lines as a client receives them.
func fields(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// only is an announcement of nothing but quotas.
func only(quotas ...announce.Quota) announce.Announcement {
	return announce.Announcement{RetryAfter: none, Quotas: quotas}
}

func after(d time.Duration) announce.Announcement { return announce.Announcement{RetryAfter: d} }

func with(d time.Duration, quotas ...announce.Quota) announce.Announcement {
	return announce.Announcement{RetryAfter: d, Quotas: quotas}
}

type row struct {
	name   string
	fields http.Header
	want   announce.Announcement
}

func check(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := announce.Read(r.fields, now); !reflect.DeepEqual(got, r.want) {
				t.Errorf("Read of\n%v\ngot  %+v\nwant %+v", r.fields, got, r.want)
			}
		})
	}
}

const day = 24 * time.Hour

// Each of these APIs sends another form.
func TestTheFieldsOfEachVendorAreRead(t *testing.T) {
	github := only(announce.Quota{Name: "x-ratelimit", Limit: 5000, Remaining: 4987, Reset: 1801 * time.Second})
	github.LeastPause = time.Minute
	check(t, []row{
		{"GitHub", fields("X-GitHub-Request-Id: C0FF:EE", "X-RateLimit-Limit: 5000", "X-RateLimit-Remaining: 4987", "X-RateLimit-Used: 13", "X-RateLimit-Reset: 1767270600", "X-RateLimit-Resource: core"), github},
		{"GitHub's secondary limit", fields("X-GitHub-Request-Id: C0FF:EE", "X-RateLimit-Limit: 5000", "X-RateLimit-Remaining: 4987", "X-RateLimit-Reset: 1767270600", "Retry-After: 60"),
			announce.Announcement{RetryAfter: time.Minute, LeastPause: time.Minute, Quotas: github.Quotas}},
		{"GitLab", fields("RateLimit-Limit: 60", "RateLimit-Observed: 67", "RateLimit-Remaining: 0", "RateLimit-Reset: 1767268830", "RateLimit-Name: throttle_authenticated_web"),
			only(announce.Quota{Name: "throttle_authenticated_web", Limit: 60, Remaining: 0, Reset: 31 * time.Second})},
		{"GitLab's refusal", fields("RateLimit-Limit: 60", "RateLimit-Remaining: 0", "RateLimit-ResetTime: Thu, 01 Jan 2026 12:00:30 GMT", "Retry-After: 30"),
			with(30*time.Second, announce.Quota{Name: "ratelimit", Limit: 60, Remaining: 0, Reset: 31 * time.Second})},
		{"Discord", fields("X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1767268864.57", "X-RateLimit-Reset-After: 64.57", "X-RateLimit-Bucket: abcd1234"),
			only(announce.Quota{Name: "x-ratelimit", Limit: 5, Remaining: 0, Reset: 64570 * time.Millisecond})},
		{"Discord without Reset-After", fields("X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1767268864.57"),
			only(announce.Quota{Name: "x-ratelimit", Limit: 5, Remaining: 0, Reset: 64570 * time.Millisecond})},
		{"Discord's shared limit", fields("X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 9", "X-RateLimit-Reset-After: 2", "X-RateLimit-Scope: shared", "Retry-After: 1337"),
			with(1337*time.Second, announce.Quota{Name: "x-ratelimit", Limit: 10, Remaining: 9, Reset: 2 * time.Second})},
		{"Shopify", fields("X-Shopify-Shop-Api-Call-Limit: 32/40"),
			only(announce.Quota{Name: "shopify", Limit: 40, Window: 20 * time.Second, Remaining: 8, Reset: time.Second / 2})},
		{"Shopify's refusal", fields("X-Shopify-Shop-Api-Call-Limit: 40/40", "Retry-After: 2.0"),
			with(2*time.Second, announce.Quota{Name: "shopify", Limit: 40, Window: 20 * time.Second, Remaining: 0, Reset: time.Second / 2})},
		{"Shopify's bucket of a larger plan", fields("X-Shopify-Shop-Api-Call-Limit: 80/80"),
			only(announce.Quota{Name: "shopify", Limit: 80, Window: 20 * time.Second, Remaining: 0, Reset: time.Second / 4})},
		{"Shopify's bucket above its size", fields("X-Shopify-Shop-Api-Call-Limit: 42/40"),
			only(announce.Quota{Name: "shopify", Limit: 40, Window: 20 * time.Second, Remaining: 0, Reset: 3 * time.Second / 2})},
		{"OpenAI", fields("x-ratelimit-limit-requests: 60", "x-ratelimit-remaining-requests: 59", "x-ratelimit-reset-requests: 12ms", "x-ratelimit-limit-tokens: 150000", "x-ratelimit-remaining-tokens: 149984", "x-ratelimit-reset-tokens: 6m0s"),
			only(announce.Quota{Name: "requests", Limit: 60, Remaining: 59, Reset: 12 * time.Millisecond},
				announce.Quota{Name: "tokens", Unit: announce.Tokens, Limit: 150000, Remaining: 149984, Reset: 6 * time.Minute})},
		{"OpenAI on Azure", fields("x-ratelimit-limit-requests: 0", "x-ratelimit-remaining-requests: -1", "x-ratelimit-remaining-tokens: -1", "x-ratelimit-limit-tokens: 0"), only()},
		{"Anthropic", fields("anthropic-ratelimit-requests-limit: 50", "anthropic-ratelimit-requests-remaining: 49", "anthropic-ratelimit-requests-reset: 2026-01-01T12:00:02Z", "anthropic-ratelimit-input-tokens-limit: 40000", "anthropic-ratelimit-input-tokens-remaining: 0", "anthropic-ratelimit-input-tokens-reset: 2026-01-01T12:00:10Z"),
			only(announce.Quota{Name: "anthropic-requests", Limit: 50, Remaining: 49, Reset: 3 * time.Second},
				announce.Quota{Name: "anthropic-input-tokens", Unit: announce.InputTokens, Limit: 40000, Remaining: 0, Reset: 11 * time.Second})},
		{"Anthropic's unified limit", fields("anthropic-ratelimit-unified-status: rejected", "anthropic-ratelimit-unified-reset: 1767272400"),
			only(announce.Quota{Name: "anthropic-unified", Unit: announce.Other, Remaining: 0, Reset: 3601 * time.Second})},
		{"X", fields("x-rate-limit-limit: 900", "x-rate-limit-remaining: 899", "x-rate-limit-reset: 1767269700"),
			only(announce.Quota{Name: "x-rate-limit", Limit: 900, Remaining: 899, Reset: 901 * time.Second})},
		{"Reddit", fields("X-Ratelimit-Used: 2", "X-Ratelimit-Remaining: 598.0", "X-Ratelimit-Reset: 412"),
			only(announce.Quota{Name: "x-ratelimit", Limit: 600, Remaining: 598, Reset: 412 * time.Second})},
		{"Slack", fields("Retry-After: 30"), after(30 * time.Second)},
		{"Stripe", fields("Stripe-Rate-Limited-Reason: endpoint-rate", "Stripe-Should-Retry: true"), only()},
		{"Stripe forbids a retry", fields("Stripe-Rate-Limited-Reason: lock_timeout", "Stripe-Should-Retry: false"), announce.Announcement{RetryAfter: none, NoRetry: true}},
		{"Atlassian", fields("X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2026-01-01T12:01Z", "X-RateLimit-NearLimit: true", "RateLimit-Reason: jira-burst-based", `Beta-RateLimit-Policy: "global-app-quota";q=65000;w=3600`, `Beta-RateLimit: "global-app-quota";t=600`),
			only(announce.Quota{Name: "x-ratelimit", Limit: 100, Remaining: 0, Reset: 61 * time.Second})},
		{"Cloudflare", fields(`Ratelimit: "default";r=50;t=30`, `Ratelimit-Policy: "burst";q=100;w=60`, "retry-after: 30"),
			with(30*time.Second, announce.Quota{Name: "burst", Limit: 100, Window: time.Minute, Remaining: none, Reset: none}, announce.Quota{Name: "default", Remaining: 50, Reset: 30 * time.Second})},
		{"Cloudflare before", fields("X-RateLimit-Limit: 1200", "X-RateLimit-Remaining: 7", "X-RateLimit-Reset: Thu, 01 Jan 2026 12:05:00 GMT"),
			only(announce.Quota{Name: "x-ratelimit", Limit: 1200, Remaining: 7, Reset: 301 * time.Second})},
		{"Docker Hub", fields("ratelimit-limit: 100;w=21600", "ratelimit-remaining: 76;w=21600", "docker-ratelimit-source: 192.0.2.1"),
			only(announce.Quota{Name: "ratelimit", Limit: 100, Window: 6 * time.Hour, Remaining: 76, Reset: none})},
		{"Docker Hub's refusal", fields("Retry-After: 1767290400"), after(6*time.Hour + time.Second)},
		{"Azure Resource Manager", fields("x-ms-ratelimit-remaining-subscription-reads: 11999"), only(announce.Quota{Name: "azure-reads", Remaining: 11999, Reset: none})},
		{"milliseconds", fields("retry-after-ms: 1500", "Retry-After: 2"), after(1500 * time.Millisecond)},
		{"Azure's milliseconds", fields("x-ms-retry-after-ms: 250"), after(250 * time.Millisecond)},
		{"Vimeo", fields("X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 94", "X-RateLimit-Reset: Thu, 01 Jan 2026 12:00:59 +0000"),
			only(announce.Quota{Name: "x-ratelimit", Limit: 100, Remaining: 94, Reset: time.Minute})},
		{"Akamai", fields("X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Next: 2026-01-01T12:00:12.5Z"),
			only(announce.Quota{Name: "x-ratelimit", Limit: 60, Remaining: 0, Reset: 12500 * time.Millisecond})},
	})
}

func TestTheFieldsOfEachDraftAreRead(t *testing.T) {
	burst := announce.Quota{Name: "burst", Limit: 100, Window: time.Minute, Remaining: none, Reset: none}
	exhausted := burst
	exhausted.Remaining, exhausted.Reset = 0, 30*time.Second
	daily := announce.Quota{Name: "day", Limit: 1000, Window: day, Remaining: none, Reset: none}
	check(t, []row{
		{"draft 11", fields(`RateLimit-Policy: "burst";q=100;w=60, "day";q=1000;w=86400`, `RateLimit: "burst";r=0;t=30`), only(exhausted, daily)},
		{"draft 11 in several fields", fields(`RateLimit-Policy: "burst";q=100;w=60`, `RateLimit-Policy: "day";q=1000;w=86400`, `RateLimit: "burst";r=0;t=30`), only(exhausted, daily)},
		{"parameters in any order, and unknown ones", fields(`RateLimit-Policy: "burst" ; w=60`, `RateLimit: "burst";r=0`), only(announce.Quota{Name: "burst", Remaining: 0, Reset: none})},
		{"a comment and a partition", fields(`RateLimit-Policy: "burst";w=60;q=100;comment="a, \"b\"";pk=:c2VjcmV0:`, `RateLimit: "burst";t=30;r=0;pk=:c2VjcmV0:`), only(exhausted)},
		{"Weir's own parameters", fields(`RateLimit-Policy: "a";q=5;w=1;weir-w-us=50000`, `RateLimit: "a";r=0;t=1;weir-wait-us=10000`),
			only(announce.Quota{Name: "a", Limit: 5, Window: 50 * time.Millisecond, Remaining: 0, Reset: time.Second, Again: 10 * time.Millisecond})},
		{"Weir's own parameters out of bounds", fields(`RateLimit-Policy: "a";q=5;w=1;weir-w-us=0`, `RateLimit: "a";r=0;t=1;weir-wait-us=-1`),
			only(announce.Quota{Name: "a", Limit: 5, Window: time.Second, Remaining: 0, Reset: time.Second})},
		{"tokens as names", fields(`RateLimit-Policy: burst;q=100;w=60`, `RateLimit: burst;r=0;t=30`), only(exhausted)},
		{"requests in flight", fields(`RateLimit-Policy: "slots";q=4;qu="concurrent-requests"`), only(announce.Quota{Name: "slots", Unit: announce.Concurrent, Limit: 4, Remaining: none, Reset: none})},
		{"bytes", fields(`RateLimit-Policy: "bytes";q=1000000;w=60;qu="content-bytes"`, `RateLimit: "bytes";r=0;t=9`), only(announce.Quota{Name: "bytes", Unit: announce.Other, Limit: 1000000, Window: time.Minute, Remaining: 0, Reset: 9 * time.Second})},
		{"the unit as the registry has it", fields(`RateLimit-Policy: "burst";q=100;w=60;qu="request"`), only(burst)},
		{"no policy", fields(`RateLimit: "burst";r=5;t=30`), only(announce.Quota{Name: "burst", Remaining: 5, Reset: 30 * time.Second})},
		{"draft 07", fields("RateLimit: limit=100, remaining=50, reset=5", "RateLimit-Policy: 100;w=60, 1000;w=86400"),
			only(announce.Quota{Name: "100 in 1m0s", Limit: 100, Window: time.Minute, Remaining: 50, Reset: 5 * time.Second}, announce.Quota{Name: "1000 in 24h0m0s", Limit: 1000, Window: day, Remaining: none, Reset: none})},
		{"draft 07 without a policy", fields("RateLimit: limit=100, remaining=50, reset=5"), only(announce.Quota{Name: "ratelimit", Limit: 100, Remaining: 50, Reset: 5 * time.Second})},
		{"draft 06", fields("RateLimit-Limit: 100", "RateLimit-Remaining: 50", "RateLimit-Reset: 5", "RateLimit-Policy: 100;w=60"),
			only(announce.Quota{Name: "100 in 1m0s", Limit: 100, Window: time.Minute, Remaining: 50, Reset: 5 * time.Second})},
		{"draft 03", fields("RateLimit-Limit: 100, 100;w=60, 1000;w=86400", "RateLimit-Remaining: 50", "RateLimit-Reset: 5"), only(announce.Quota{Name: "ratelimit", Limit: 100, Remaining: 50, Reset: 5 * time.Second})},
		{"legacy", fields("X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 50", "X-RateLimit-Reset: 5"), only(announce.Quota{Name: "x-ratelimit", Limit: 100, Remaining: 50, Reset: 5 * time.Second})},
		{"legacy with an epoch", fields("X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 50", "X-RateLimit-Reset: 1767268805"), only(announce.Quota{Name: "x-ratelimit", Limit: 100, Remaining: 50, Reset: 6 * time.Second})},
		{"legacy with an epoch in milliseconds", fields("X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 50", "X-RateLimit-Reset: 1767268805250"), only(announce.Quota{Name: "x-ratelimit", Limit: 100, Remaining: 50, Reset: 5250 * time.Millisecond})},
	})
}

func TestRetryAfterIsReadInEachForm(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"120":                              2 * time.Minute,
		" 120 ":                            2 * time.Minute,
		"0":                                0,
		"2.0":                              2 * time.Second,
		"64.57":                            64570 * time.Millisecond,
		"Thu, 01 Jan 2026 12:02:00 GMT":    121 * time.Second,
		"Thursday, 01-Jan-26 12:02:00 GMT": 121 * time.Second,
		"Thu Jan  1 12:02:00 2026":         121 * time.Second,
		"Thu, 01 Jan 2026 12:02:00 UTC":    121 * time.Second, // as sethvargo/go-limiter writes it
		"Thu, 01 Jan 2026 11:00:00 GMT":    0,
		"Fri, 31 Dec 1999 23:59:59 GMT":    0,
		"1767268830":                       31 * time.Second, // as Docker Hub sends it
		"":                                 none,
		"-1":                               none,
		"-5":                               none,
		"+5":                               none,
		"soon":                             none,
		"1e3":                              none,
		"NaN":                              none,
		"1e18":                             none,
		"1000000000000000000":              none,
		"99999999999999999999999999":       none,
		"31622401":                         none,            // more than a year
		"60, 120":                          2 * time.Minute, // of two servers on the way
		"120, 60":                          2 * time.Minute,
		"soon, 60":                         time.Minute,
		", ":                               none,
		"5, Thu, 01 Jan 2026 12:02:00 GMT": 121 * time.Second,
		"Thu, 01 Jan 2026 12:02:00 GMT, 5": 121 * time.Second,
		"Thu, 01 Jan 2026 12:01:60 GMT":    121 * time.Second, // a leap second
		"Thursday, 01-Jan-26 12:01:60 GMT": 121 * time.Second,
		"Thu Jan  1 12:01:60 2026":         121 * time.Second,
		"2026-01-01T12:01:60Z":             121 * time.Second,
		"2026-01-01T12:01:60.5Z":           120500 * time.Millisecond,
		"2026-01-01T12:60:00Z":             none,
		"Thu, 01 Jan 2026 12:01:61 GMT":    none,
		".5":                               none,
		"5.":                               none,
		"Thu, 01 Jan 9999 12:02:00 GMT":    none,
		"Thu, 99 Jan 2026 12:02:00 GMT":    none,
	} {
		if got := announce.Read(fields("Retry-After: "+text), now).RetryAfter; got != want {
			t.Errorf("Retry-After: %q is %v, want %v", text, got, want)
		}
	}
}

// A client whose clock is wrong reads dates and epochs against the clock of the server.
func TestInstantsAreMeasuredAgainstTheServersClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
		h := fields("Date: Thu, 01 Jan 2026 12:00:00 GMT", "Retry-After: Thu, 01 Jan 2026 12:00:30 GMT", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1767268810")
		a := announce.Read(h, now.Add(skew))
		if a.RetryAfter != 31*time.Second || len(a.Quotas) != 1 || a.Quotas[0].Reset != 11*time.Second {
			t.Errorf("with a clock off by %v: %+v, want a pause of 31s and a reset in 11s", skew, a)
		}
	}
}

func TestMalformedFieldsAreIgnored(t *testing.T) {
	for _, line := range []string{
		`RateLimit: "burst";r=-1`, `RateLimit: "burst";r=1.5`, `RateLimit: "burst";r="5"`, `RateLimit: "burst"`, `RateLimit: "burst`, `RateLimit: "burst";r=5,`,
		`RateLimit: "burst";r=5 "x"`, `RateLimit: ("burst");r=5`, `RateLimit: "a\b";r=5`, "RateLimit: \"a\x7f\";r=5", `RateLimit: "burst";R=5`, `RateLimit: 5;r=5`,
		`RateLimit: "burst";r=9999999999999999`, `RateLimit: "burst";r=5, ;`, `RateLimit: ,`, `RateLimit: limit=x, remaining=y, reset=z`, `RateLimit: limit=-5, remaining=-5, reset=-5`,
		`RateLimit-Policy: "burst";w=60`, `RateLimit-Policy: "burst";q=-1;w=60`, `RateLimit-Policy: 0;w=60`, `RateLimit-Policy: ?1;w=60`, `RateLimit-Policy: :YQ==`,
		"X-RateLimit-Remaining: -1", "X-RateLimit-Remaining: many", "X-RateLimit-Remaining: 1e18", "X-RateLimit-Limit: 0", "X-RateLimit-Reset: -5", "X-RateLimit-Reset: soon",
		"X-Shopify-Shop-Api-Call-Limit: 40", "X-Shopify-Shop-Api-Call-Limit: -1/40", "X-Shopify-Shop-Api-Call-Limit: 1/0", "X-Shopify-Shop-Api-Call-Limit: a/b",
		"RateLimit: " + strings.Repeat(`"a";r=5, `, 1000) + `"a";r=5`,
	} {
		if got := announce.Read(fields(line), now); len(got.Quotas) != 0 {
			t.Errorf("%.80s gives %+v, want nothing", line, got.Quotas)
		}
	}
}

// A value that cannot be believed does not spoil the others.
func TestOneMalformedValueLeavesTheOthers(t *testing.T) {
	check(t, []row{
		{"an absurd reset", fields("X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 1e18"), only(announce.Quota{Name: "x-ratelimit", Limit: 100, Remaining: 5, Reset: none})},
		{"an absurd window", fields(`RateLimit-Policy: "a";q=5;w=999999999999`), only(announce.Quota{Name: "a", Limit: 5, Remaining: none, Reset: none})},
		{"an absurd t", fields(`RateLimit: "a";r=5;t=999999999999`), only(announce.Quota{Name: "a", Remaining: 5, Reset: none})},
		{"a malformed policy field", fields(`RateLimit-Policy: "a`, `RateLimit: "a";r=5;t=3`), only(announce.Quota{Name: "a", Remaining: 5, Reset: 3 * time.Second})},
		{"an item without r or t", fields(`RateLimit: "a", "b";r=5;t=3`), only(announce.Quota{Name: "b", Remaining: 5, Reset: 3 * time.Second})},
		{"a limit of no number", fields("X-RateLimit-Limit: many", "X-RateLimit-Remaining: 5", "X-RateLimit-Reset: 3"), only(announce.Quota{Name: "x-ratelimit", Remaining: 5, Reset: 3 * time.Second})},
		{"a limit of 0, which is none", fields("X-RateLimit-Limit: 0", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 3"), only(announce.Quota{Name: "x-ratelimit", Remaining: none, Reset: 3 * time.Second})},
	})
}

// The reset of a refusal counts also when the remainder cannot be read.
func TestAResetStaysWithoutARemainder(t *testing.T) {
	reset := func(name string, limit int64) announce.Announcement {
		return only(announce.Quota{Name: name, Limit: limit, Remaining: none, Reset: 13 * time.Second})
	}
	policy := reset("a", 5)
	policy.Quotas[0].Window = time.Minute
	var rows []row
	for _, r := range []string{"-1", "many", "1e18", ""} {
		rows = append(rows,
			row{"legacy " + r, fields("X-RateLimit-Limit: 5", "X-RateLimit-Remaining: "+r, "X-RateLimit-Reset: 13"), reset("x-ratelimit", 5)},
			row{"legacy epoch " + r, fields("X-RateLimit-Remaining: "+r, "X-RateLimit-Reset: 1767268812"), reset("x-ratelimit", 0)},
			row{"draft 06 " + r, fields("RateLimit-Limit: 5", "RateLimit-Remaining: "+r, "RateLimit-Reset: 13"), reset("ratelimit", 5)},
			row{"OpenAI " + r, fields("x-ratelimit-remaining-requests: "+r, "x-ratelimit-reset-requests: 13s"), reset("requests", 0)},
			row{"Anthropic " + r, fields("anthropic-ratelimit-requests-remaining: "+r, "anthropic-ratelimit-requests-reset: 2026-01-01T12:00:12Z"), reset("anthropic-requests", 0)})
	}
	check(t, append(rows,
		row{"draft 07", fields("RateLimit: limit=5, remaining=-1, reset=13"), reset("ratelimit", 5)},
		row{"draft 11", fields(`RateLimit-Policy: "a";q=5;w=60`, `RateLimit: "a";r=-1;t=13`), policy},
		row{"draft 11 without r", fields(`RateLimit: "a";t=13`), reset("a", 0)},
		row{"a list of resets", fields("X-RateLimit-Reset: 7, 13"), reset("x-ratelimit", 0)},
	))
}

func TestQuotasOfACachedAnswerAreIgnored(t *testing.T) {
	check(t, []row{
		{"cached", fields("Age: 30", `RateLimit: "a";r=0;t=60`, "Retry-After: 5"), after(5 * time.Second)},
		{"fresh", fields("Age: 0", `RateLimit: "a";r=0;t=60`), only(announce.Quota{Name: "a", Remaining: 0, Reset: time.Minute})},
	})
}

func TestTheNumberOfQuotasIsBounded(t *testing.T) {
	var items []string
	for _, name := range "abcdefghijklmnopqrstuvwxyz" {
		items = append(items, `"`+string(name)+`";q=1;w=1`)
	}
	if got := announce.Read(fields("RateLimit-Policy: "+strings.Join(items, ", ")), now); len(got.Quotas) != announce.MaxQuotas {
		t.Errorf("%d quotas of 26, want %d", len(got.Quotas), announce.MaxQuotas)
	}
}

func TestAnAnswerWithoutAnnouncementsAllocatesNothing(t *testing.T) {
	h := fields("Content-Type: text/html", "Content-Length: 5", "Date: Thu, 01 Jan 2026 12:00:00 GMT", "Server: x", "Etag: y", "Cache-Control: no-cache")
	if n := testing.AllocsPerRun(100, func() { announce.Read(h, now) }); n != 0 {
		t.Errorf("an answer without announcements costs %v allocations, want 0", n)
	}
}
