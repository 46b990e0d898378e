package simulate

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Report is what a replay found. As JSON it is what `weir replay --format json`
// prints. Nothing in it depends on the order of the lines.
type Report struct {
	Lines    int64         `json:"lines"`    // all that were read, blank ones too
	Unparsed int64         `json:"unparsed"` // lines that do not count
	Reasons  []Reason      `json:"unparsed_reasons,omitempty"`
	Keys     int           `json:"keys"` // distinct keys
	First    time.Time     `json:"-"`    // the earliest event; zero if there is none
	Last     time.Time     `json:"-"`    // the latest event
	Limits   []LimitReport `json:"limits"`
}

// LimitReport is what one candidate would have done.
type LimitReport struct {
	Limit        string         `json:"limit"` // the text as it was given
	Admitted     int64          `json:"admitted"`
	Denied       int64          `json:"denied"`
	Delayed      int64          `json:"delayed,omitempty"` // of the admitted, by a leaky bucket
	KeysDenied   int            `json:"keys_denied"`       // keys that were denied at least once
	WorstKeys    []KeyReport    `json:"worst_keys"`        // the most denied first; none without a denial
	WorstMinutes []MinuteReport `json:"worst_minutes"`     // the most denied first; none without a denial
}

// KeyReport is one key under one candidate. A key that is not UTF-8 is quoted.
type KeyReport struct {
	Key      string `json:"key"`
	Admitted int64  `json:"admitted"`
	Denied   int64  `json:"denied"`
}

// MinuteReport is one minute, of all keys, under one candidate.
type MinuteReport struct {
	Minute   time.Time `json:"minute"` // its start, in UTC
	Admitted int64     `json:"admitted"`
	Denied   int64     `json:"denied"`
}

// report is what is known without any candidate. The events are grouped.
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

// valid is text that JSON can hold, and different for different keys.
func valid(key string) string {
	if utf8.ValidString(key) {
		return key
	}
	return strconv.Quote(key)
}
