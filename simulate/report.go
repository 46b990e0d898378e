package simulate

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Report is the result of a replay. `weir replay --format json` prints it as JSON. It does not depend on the order of
// the lines.
type Report struct {
	Lines    int64         `json:"lines"`    // all lines read, including blank ones
	Unparsed int64         `json:"unparsed"` // lines that were rejected
	Reasons  []Reason      `json:"unparsed_reasons,omitempty"`
	Keys     int           `json:"keys"` // distinct keys
	First    time.Time     `json:"-"`    // the earliest event; zero without events
	Last     time.Time     `json:"-"`    // the latest event
	Limits   []LimitReport `json:"limits"`
	// Difference compares the first two limits, if there are exactly two.
	Difference *Difference `json:"difference,omitempty"`
}

// LimitReport is the result of one candidate.
type LimitReport struct {
	Limit        string         `json:"limit"` // the text as given
	Admitted     int64          `json:"admitted"`
	Denied       int64          `json:"denied"`
	Delayed      int64          `json:"delayed,omitempty"` // admitted with a delay, by a leaky bucket
	KeysDenied   int            `json:"keys_denied"`       // keys that were denied at least once
	WorstKeys    []KeyReport    `json:"worst_keys"`        // the most denied first; empty without denials
	WorstMinutes []MinuteReport `json:"worst_minutes"`     // the most denied first; empty without denials
	Series       Series         `json:"-"`                 // requests over time, from the first event
}

// KeyReport is the result for one key under one candidate. A key that is not UTF-8 is quoted.
type KeyReport struct {
	Key      string `json:"key"`
	Admitted int64  `json:"admitted"`
	Denied   int64  `json:"denied"`
}

// MinuteReport is the result for one minute under one candidate, over all keys.
type MinuteReport struct {
	Minute   time.Time `json:"minute"` // its start, in UTC
	Admitted int64     `json:"admitted"`
	Denied   int64     `json:"denied"`
}

// report returns the figures that do not depend on a candidate. The caller has grouped the events.
func (t *Traffic) report() Report {
	r := Report{Lines: t.lines, Unparsed: t.unparsed, Reasons: t.rejected(), Keys: len(t.keys), Limits: []LimitReport{}}
	for id := range t.keys {
		times := t.events.of(id)
		first, last := time.Unix(0, times[0]).UTC(), time.Unix(0, times[len(times)-1]).UTC()
		if id == 0 || first.Before(r.First) {
			r.First = first
		}
		if id == 0 || last.After(r.Last) {
			r.Last = last
		}
	}
	return r
}

// valid returns the key as text that JSON can hold. Different keys stay different.
func valid(key string) string {
	if utf8.ValidString(key) {
		return key
	}
	return strconv.Quote(key)
}
