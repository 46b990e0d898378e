package httplimit

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// Headers is the format of the header fields about limits. The IETF draft has changed its fields several times, so
// each version has a name.
type Headers int

const (
	// Draft11 is draft-ietf-httpapi-ratelimit-headers-11, like 08 to 10:
	//
	//	RateLimit-Policy: "client-1";q=60;w=60, "client-2";q=1000;w=86400
	//	RateLimit: "client-1";r=59;t=1
	//
	// For limits that whole seconds describe badly it adds weir-wait-us and weir-w-us, in microseconds: see docs/reference/http.md.
	Draft11 Headers = iota
	// Draft07 has RateLimit: limit=60, remaining=59, reset=1, and the policy
	// field of Draft06.
	Draft07
	// Draft06 has RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset in
	// seconds, and RateLimit-Policy: 60;w=60, 1000;w=86400.
	Draft06
	// Legacy has X-RateLimit-Limit, X-RateLimit-Remaining, and
	// X-RateLimit-Reset in seconds.
	Legacy
	// NoHeaders writes no field except Retry-After.
	NoHeaders
)

// The names of fields, in the form of http.Header.
const (
	fieldRateLimit  = "Ratelimit"
	fieldPolicy     = "Ratelimit-Policy"
	fieldRetryAfter = "Retry-After"
)

// single holds the names of the formats with one number per field: limit, remaining, reset.
var single = map[Headers][3]string{
	Draft06: {"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"},
	Legacy:  {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
}

// AddFields adds the header fields about a decision on requests to an answer: those of a format, and Retry-After to a refusal.
// A middleware does so on its own; this is for servers that ask their engine themselves. If the fields of a format are there
// already, lists grow, and single fields keep the tighter values. An admission that no limit decided gets none.
//
// again, unless it is nil, returns how long until a request like an admitted one fits, or 0. It is called only if a client
// should know that and the decision does not tell.
func AddFields(h http.Header, format Headers, d weir.Decision, again func() time.Duration, requests ...weir.Request) {
	if d.Allowed && d.Limit == weir.MaxCount {
		return
	}
	addFields(h, format, &d, again, requests)
	if refusal := tooMany(&d, binding(&d, requests)); !d.Allowed && refusal.RetryAfter > 0 {
		h[fieldRetryAfter] = []string{decimal(int64(refusal.RetryAfter / time.Second))}
	}
}

// addFields adds the fields of a format.
func addFields(h http.Header, format Headers, d *weir.Decision, again func() time.Duration, requests []weir.Request) {
	if format == NoHeaders {
		return
	}
	p := binding(d, requests)
	if format == Draft11 {
		writeDraft11(h, d, p, requests, untilAgain(d, p, requests, again))
		return
	}
	if p == nil || d.Allowed && lessRemains(h, format, d.Remaining) {
		return
	}
	reset := int64(0)
	if t := p.until(d); t >= 0 {
		reset = t
	}
	if format == Draft07 {
		h[fieldRateLimit] = []string{"limit=" + decimal(p.capacity) + ", remaining=" + decimal(d.Remaining) + ", reset=" + decimal(reset)}
	} else {
		names := single[format]
		h[names[0]], h[names[1]], h[names[2]] = []string{decimal(p.capacity)}, []string{decimal(d.Remaining)}, []string{decimal(reset)}
	}
	if format == Legacy {
		return
	}
	for i := range requests {
		if s := policiesOf(requests[i].Rule); s.older != "" {
			h[fieldPolicy] = append(h[fieldPolicy], s.older)
		}
	}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// lessRemains reports whether an outer middleware has set a smaller remainder.
func lessRemains(h http.Header, format Headers, remaining int64) bool {
	text := ""
	if format == Draft07 {
		_, text, _ = strings.Cut(h.Get(fieldRateLimit), "remaining=")
		text, _, _ = strings.Cut(text, ",")
	} else {
		text = h.Get(single[format][1])
	}
	remains, err := strconv.ParseInt(text, 10, 64)
	return err == nil && remains < remaining
}

// writeDraft11 makes both fields in one allocation.
func writeDraft11(h http.Header, d *weir.Decision, p *policy, requests []weir.Request, again time.Duration) {
	var space [256]byte
	b := space[:0]
	for i := range requests {
		s := policiesOf(requests[i].Rule)
		if len(b) > 0 && s.draft11 != "" {
			b = append(b, ", "...)
		}
		b = append(b, s.draft11...)
	}
	policyEnd := len(b)
	if p != nil {
		b = append(b, p.quoted...)
		b = append(b, ";r="...)
		b = strconv.AppendInt(b, min(d.Remaining, maxInteger), 10)
		if t := p.until(d); t >= 0 {
			b = append(b, ";t="...)
			b = strconv.AppendInt(b, t, 10)
		}
		if again > 0 {
			b = append(b, paramAgain...)
			b = strconv.AppendInt(b, micros(again), 10)
		}
	}
	if policyEnd == 0 {
		return
	}
	text := string(b)
	values := [2]string{text[:policyEnd], text[policyEnd:]}
	addField(h, fieldPolicy, values[0:1:1])
	if p != nil {
		addField(h, fieldRateLimit, values[1:2:2])
	}
}

// addField adds a value to those of an outer middleware.
func addField(h http.Header, name string, value []string) {
	if before := h[name]; len(before) > 0 {
		value = append(before[:len(before):len(before)], value...)
	}
	h[name] = value
}

// until returns t in whole seconds: when a refused request can be retried, or when an admitted client has its whole
// quota again. It is -1 if that time is unknown.
func (p *policy) until(d *weir.Decision) int64 {
	switch {
	case p.held || d.RetryAfter == weir.Never:
		return -1
	case !d.Allowed:
		return seconds(d.RetryAfter)
	}
	t := seconds(d.LimitReset)
	if t > math.MaxInt32 {
		return -1
	}
	return t
}
