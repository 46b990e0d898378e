package announce

import (
	"strconv"
	"strings"
	"time"
)

// family is fields that state one number each.
type family struct {
	name string // name of the quota
	unit Unit

	limit, remaining, used string // counts
	reset                  string // when units come back, in any form
	resetAfter             string // the same in seconds from now; it is better than reset
	called                 string // the vendor's name of the quota
}

// families are the fields of drafts before 07 and of vendors, in the form of http.Header.
var families = []family{
	// Drafts up to 06; GitLab, with an epoch and a name; Docker Hub, with a window in the values.
	{name: "ratelimit", limit: "Ratelimit-Limit", remaining: "Ratelimit-Remaining", used: "Ratelimit-Observed", reset: "Ratelimit-Reset", called: "Ratelimit-Name"},
	// The legacy fields: many servers in seconds from now, GitHub and Discord in epoch seconds, Reddit without a
	// limit, Atlassian and Vimeo as a date.
	{name: "x-ratelimit", limit: "X-Ratelimit-Limit", remaining: "X-Ratelimit-Remaining", used: "X-Ratelimit-Used", reset: "X-Ratelimit-Reset", resetAfter: "X-Ratelimit-Reset-After"},
	// X.
	{name: "x-rate-limit", limit: "X-Rate-Limit-Limit", remaining: "X-Rate-Limit-Remaining", reset: "X-Rate-Limit-Reset"},
	// OpenAI.
	{name: "requests", limit: "X-Ratelimit-Limit-Requests", remaining: "X-Ratelimit-Remaining-Requests", reset: "X-Ratelimit-Reset-Requests"},
	{name: "tokens", unit: Tokens, limit: "X-Ratelimit-Limit-Tokens", remaining: "X-Ratelimit-Remaining-Tokens", reset: "X-Ratelimit-Reset-Tokens"},
	// Anthropic.
	{name: "anthropic-requests", limit: "Anthropic-Ratelimit-Requests-Limit", remaining: "Anthropic-Ratelimit-Requests-Remaining", reset: "Anthropic-Ratelimit-Requests-Reset"},
	{name: "anthropic-tokens", unit: Tokens, limit: "Anthropic-Ratelimit-Tokens-Limit", remaining: "Anthropic-Ratelimit-Tokens-Remaining", reset: "Anthropic-Ratelimit-Tokens-Reset"},
	{name: "anthropic-input-tokens", unit: InputTokens, limit: "Anthropic-Ratelimit-Input-Tokens-Limit", remaining: "Anthropic-Ratelimit-Input-Tokens-Remaining", reset: "Anthropic-Ratelimit-Input-Tokens-Reset"},
	{name: "anthropic-output-tokens", unit: OutputTokens, limit: "Anthropic-Ratelimit-Output-Tokens-Limit", remaining: "Anthropic-Ratelimit-Output-Tokens-Remaining", reset: "Anthropic-Ratelimit-Output-Tokens-Reset"},
	{name: "anthropic-unified", unit: Other, reset: "Anthropic-Ratelimit-Unified-Reset"},
	// Azure Resource Manager.
	{name: "azure-reads", remaining: "X-Ms-Ratelimit-Remaining-Subscription-Reads"},
	{name: "azure-writes", remaining: "X-Ms-Ratelimit-Remaining-Subscription-Writes"},
	{name: "azure-deletes", remaining: "X-Ms-Ratelimit-Remaining-Subscription-Deletes"},
}

// family reads the fields of a family. A number that cannot be read, such as a negative one, is unknown, and so are all
// numbers beside a limit of 0. The reset stays, because a refusal is over then.
func (r *reader) family(f *family) {
	v := triple{limit: Unknown, remaining: Unknown, reset: Unknown}
	limit, window, ok := r.count(r.field(f.limit))
	if ok {
		v.limit = limit
	}
	if n, _, ok := r.count(r.field(f.remaining)); ok && v.limit != 0 {
		v.remaining = n
	}
	if used, _, ok := r.count(r.field(f.used)); ok && v.limit == Unknown && v.remaining >= 0 {
		v.limit = used + v.remaining
	}
	v.reset = r.resetOf(f)
	if v.limit < 1 && v.remaining < 0 && v.reset < 0 {
		return
	}
	if called := r.h.Get(f.called); f.called != "" && called != "" {
		f = &family{name: called, unit: f.unit}
	}
	r.addFamily(f, v, window)
}

// addFamily adds the quota of a family. Those of the drafts belong to one of the policies.
func (r *reader) addFamily(f *family, v triple, window time.Duration) {
	if f.name == "ratelimit" && window == 0 {
		r.attach(v)
		return
	}
	r.add(Quota{Name: f.name, Unit: f.unit, Limit: max(v.limit, 0), Window: window, Remaining: v.remaining, Reset: v.reset})
}

// resetOf returns the time until units come back.
func (r *reader) resetOf(f *family) time.Duration {
	if d, ok := parseNumber(r.h.Get(f.resetAfter), time.Second); ok && f.resetAfter != "" {
		return d
	}
	return r.longest(f.reset)
}

// count reads a number of units, such as 100, 598.0, or 100;w=21600 with a window. In a list, as in drafts before 06,
// the first counts.
func (r *reader) count(text string) (n int64, window time.Duration, ok bool) {
	text, _, _ = strings.Cut(text, ",")
	text, params, _ := strings.Cut(text, ";")
	if n, _, ok = number(strings.TrimSpace(text)); !ok {
		return 0, 0, false
	}
	if w, found := strings.CutPrefix(strings.TrimSpace(params), "w="); found {
		window, _ = parseNumber(w, time.Second)
	}
	return n, window, true
}

// vendors reads the fields of vendors that belong to no family.
func (r *reader) vendors() {
	if used, size, ok := strings.Cut(r.h.Get("X-Shopify-Shop-Api-Call-Limit"), "/"); ok {
		r.shopify(used, size)
	}
	// GitLab and Akamai say when to come back apart from the quota.
	for _, name := range [...]string{"Ratelimit-Resettime", "X-Ratelimit-Next"} {
		if d := r.longest(name); d >= 0 {
			r.resetUnknown(d)
		}
	}
	if r.h.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" {
		if q := r.named("anthropic-unified"); q != nil {
			q.Remaining = 0
		}
	}
}

// shopifyLeaks is how long a bucket of Shopify's REST API, of any size, takes to leak all of its units.
const shopifyLeaks = 20 * time.Second

// shopify reads used/size, which counts up. A unit comes back when the bucket has leaked one, and one more for each unit
// above its size.
func (r *reader) shopify(used, size string) {
	u, err := strconv.ParseInt(strings.TrimSpace(used), 10, 32)
	s, err2 := strconv.ParseInt(strings.TrimSpace(size), 10, 32)
	if err == nil && err2 == nil && u >= 0 && s > 0 {
		unit := (shopifyLeaks + time.Duration(s-1)) / time.Duration(s) // rounded up
		units := min(time.Duration(1+max(u-s, 0)), maxAhead/unit)
		r.add(Quota{Name: "shopify", Limit: s, Window: shopifyLeaks, Remaining: max(s-u, 0), Reset: units * unit})
	}
}

// resetUnknown sets the reset of quotas that have none.
func (r *reader) resetUnknown(d time.Duration) {
	for i := range r.quotas {
		if q := &r.quotas[i]; q.Reset == Unknown && q.Remaining >= 0 {
			q.Reset = d
		}
	}
}
