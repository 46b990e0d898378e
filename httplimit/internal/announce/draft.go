package announce

import (
	"strconv"
	"time"
)

// The fields of the IETF drafts, in the form of http.Header.
const (
	fieldRateLimit = "Ratelimit"
	fieldPolicy    = "Ratelimit-Policy"
)

// drafts reads RateLimit and RateLimit-Policy. Drafts 08 to 11 name each quota; 06 and 07 do not.
func (r *reader) drafts() {
	policies, _ := parseList(r.field(fieldPolicy))
	limits, _ := parseList(r.field(fieldRateLimit))
	for i := range policies {
		r.policy(&policies[i])
	}
	if len(limits) > 0 && limits[0].key != "" {
		r.draft07(limits)
		return
	}
	for i := range limits {
		r.limit(&limits[i])
	}
}

// policy reads an item of RateLimit-Policy: "name";q=100;w=60, or 100;w=60 in the older drafts.
func (r *reader) policy(m *member) {
	q := Quota{Remaining: Unknown, Reset: Unknown}
	if w, ok := m.integer("w"); ok && w > 0 && w <= int64(maxAhead/time.Second) {
		q.Window = time.Duration(w) * time.Second
	}
	if d := m.micros("weir-w-us"); d > 0 {
		q.Window = d
	}
	switch m.value.kind {
	case isNumber:
		n, ok := integer(m.value)
		if !ok || n < 1 {
			return
		}
		q.Limit, q.Name = n, unnamed(n, q.Window)
	case isString, isToken:
		n, ok := m.integer("q")
		if !ok {
			return // q is required
		}
		q.Limit, q.Name = n, m.value.text
	default:
		return
	}
	if unit, ok := m.param("qu"); ok {
		q.Unit = unitOf(unit.text)
	}
	r.add(q)
}

// unnamed is the name of a policy of the older drafts.
func unnamed(limit int64, window time.Duration) string {
	return strconv.FormatInt(limit, 10) + " in " + window.String()
}

func unitOf(text string) Unit {
	switch text {
	case "requests", "request":
		return Requests
	case "concurrent-requests":
		return Concurrent
	}
	return Other
}

// limit reads an item of RateLimit: "name";r=50;t=30. r is required. Without one that can be read, only the reset is known.
func (r *reader) limit(m *member) {
	if m.value.kind != isString && m.value.kind != isToken {
		return
	}
	said := Quota{Name: m.value.text, Remaining: Unknown, Reset: Unknown}
	if n, ok := m.integer("r"); ok {
		said.Remaining = n
	}
	if t, ok := m.integer("t"); ok && t <= int64(maxAhead/time.Second) {
		said.Reset = time.Duration(t) * time.Second
	}
	said.Again = m.micros("weir-wait-us")
	if q := r.named(said.Name); q != nil {
		q.Remaining, q.Reset, q.Again = said.Remaining, said.Reset, said.Again
		return
	}
	r.add(said)
}

// draft07 reads RateLimit: limit=100, remaining=50, reset=5.
func (r *reader) draft07(members []member) {
	values := triple{limit: Unknown, remaining: Unknown, reset: Unknown}
	for i := range members {
		switch n, ok := integer(members[i].value); members[i].key {
		case "limit":
			if ok {
				values.limit = n
			}
		case "remaining":
			if ok {
				values.remaining = n
			}
		case "reset":
			if d, ok := r.until(members[i].value.text); ok {
				values.reset = d
			}
		}
	}
	r.attach(values)
}

// triple is what the older formats state about one quota.
type triple struct {
	limit, remaining int64
	reset            time.Duration
}

// attach states the values of the policy with their limit, or of a quota without a window.
func (r *reader) attach(v triple) {
	for i := range r.quotas {
		if q := &r.quotas[i]; q.Limit == v.limit && q.Remaining == Unknown && q.Unit == Requests {
			q.Remaining, q.Reset = v.remaining, v.reset
			return
		}
	}
	r.add(Quota{Name: "ratelimit", Limit: max(v.limit, 0), Remaining: v.remaining, Reset: v.reset})
}

// micros returns a parameter in microseconds; 0 if there is none, or none within the bounds.
func (m *member) micros(key string) time.Duration {
	n, ok := m.integer(key)
	if !ok || n > int64(maxAhead/time.Microsecond) {
		return 0
	}
	return time.Duration(n) * time.Microsecond
}

// integer returns an integer parameter that is not negative.
func (m *member) integer(key string) (int64, bool) {
	value, ok := m.param(key)
	if !ok {
		return 0, false
	}
	return integer(value)
}

// integer returns an integer that is not negative.
func integer(b bare) (int64, bool) {
	if b.kind != isNumber {
		return 0, false
	}
	whole, fraction, ok := number(b.text)
	return whole, ok && fraction == 0
}
