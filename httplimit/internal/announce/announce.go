// Package announce reads what HTTP servers say about their limits in header fields: Retry-After, the RateLimit fields
// of the IETF drafts, and those of vendors.
//
// Each family of fields has its own unit: seconds from now, seconds or milliseconds since the epoch, dates, durations.
// The package tells them apart and returns durations from now. It ignores a field that it cannot read, and a value out
// of bounds.
package announce

import (
	"net/http"
	"strings"
	"time"
)

// Announcement is what one answer says.
type Announcement struct {
	// RetryAfter is the pause that the answer asks for; Unknown without one.
	RetryAfter time.Duration
	// NoRetry reports that the server forbids a retry of the request.
	NoRetry bool
	// LeastPause is the shortest pause that the vendor's terms ask of a client that was refused without a Retry-After.
	LeastPause time.Duration
	Quotas     []Quota // at most MaxQuotas
}

// Quota is one limit of a server.
type Quota struct {
	Name      string // as the server calls it, or the family of its fields
	Unit      Unit
	Limit     int64         // the units of a window; 0 if unknown
	Window    time.Duration // 0 if unknown
	Remaining int64         // the units left; Unknown if the answer does not say
	Reset     time.Duration // until units come back; Unknown if the answer does not say
	Again     time.Duration // until a request like this one fits, if the server is Weir and it does not fit now; otherwise 0
}

// Unknown is the value of a number that an answer does not state.
const Unknown = -1

// Unit is what a quota counts.
type Unit uint8

const (
	Requests   Unit = iota
	Concurrent      // requests in flight
	Other           // something whose use a client cannot count beforehand, such as bytes

	// The units of a language model.
	Tokens
	InputTokens
	OutputTokens
)

// Bounds. A server that exceeds them is not believed.
const (
	MaxQuotas = 8
	maxField  = 4 << 10 // bytes of all values of one field
	maxAhead  = 366 * 24 * time.Hour
)

// Read returns the announcement of an answer that arrived at now. The fields of an answer from a cache are old, so it
// reads only Retry-After of such an answer.
func Read(h http.Header, now time.Time) Announcement {
	a := Announcement{RetryAfter: Unknown}
	if !speaks(h) {
		return a
	}
	r := reader{h: h, now: now}
	r.readDate()
	a.RetryAfter = r.retryAfter()
	a.NoRetry = h.Get("Stripe-Should-Retry") == "false" || h.Get("X-Should-Retry") == "false"
	if h.Get("X-Github-Request-Id") != "" {
		a.LeastPause = time.Minute
	}
	if !isCached(h) {
		r.drafts()
		for i := range families {
			r.family(&families[i])
		}
		r.vendors()
	}
	a.Quotas = r.quotas
	return a
}

// speaks reports whether any field may say something. Most answers have none, and are read once.
func speaks(h http.Header) bool {
	for name := range h {
		if strings.Contains(name, "atelimit") || strings.Contains(name, "Rate-Limit") || strings.Contains(name, "Retry") ||
			strings.HasPrefix(name, "X-Shopify") || name == "X-Github-Request-Id" {
			return true
		}
	}
	return false
}

// isCached reports whether an answer comes from a cache.
func isCached(h http.Header) bool {
	age := h.Get("Age")
	return age != "" && age != "0"
}

// retryAfter returns the pause that the answer asks for.
func (r *reader) retryAfter() time.Duration {
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if d, ok := parseNumber(r.h.Get(name), time.Millisecond); ok {
			return d
		}
	}
	return r.longest("Retry-After")
}

// Pause returns the pause that a refusal names: Retry-After, or the longest reset of the quotas that have no units left, or
// may have none. It is false if the refusal names none.
func (a *Announcement) Pause() (pause time.Duration, named bool) {
	if a.RetryAfter > 0 {
		return a.RetryAfter, true
	}
	for i := range a.Quotas {
		if q := &a.Quotas[i]; q.Remaining < 1 && q.Reset > 0 {
			pause, named = max(pause, q.Reset), true
		}
	}
	return pause, named
}

// Extend makes the pause of a refusal at least as long as the program says.
func (a *Announcement) Extend(pause time.Duration) {
	said, named := a.Pause()
	if !named {
		said = a.LeastPause
	}
	a.RetryAfter = max(pause, said)
}
