package replay

import (
	"iter"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// Unshown is a limit that a log cannot show, because the log is shorter than the window of the limit: a quota of a month on the log
// of a week. Its refusals in the log say little; the pace says more.
type Unshown struct {
	Limit   string  `json:"limit"`
	Count   int64   `json:"count"`             // the units of a window
	Window  float64 `json:"window_seconds"`    // of a month, 30 days
	Log     float64 `json:"log_seconds"`       // how long the log is
	Most    int64   `json:"most"`              // the units of the key that asks for most in the log
	Reaches int64   `json:"reaches"`           // what that key asks for in a window at this pace
	Keys    int     `json:"keys_beyond"`       // the keys that ask for more than Count in a window, each at its pace
	File    string  `json:"file,omitempty"`    // of a rules file
	Rule    string  `json:"rule,omitempty"`    // of a rules file
	Unit    string  `json:"unit,omitempty"`    // of a quota, such as month
	Subject string  `json:"subject,omitempty"` // what a key of a rule is called, such as customer
}

// units are the window lengths that the pace of a quota assumes, because its windows differ in length.
var units = map[weir.CalendarUnit]time.Duration{
	weir.Day: 24 * time.Hour, weir.Week: 7 * 24 * time.Hour, weir.Month: 30 * 24 * time.Hour, weir.Quarter: 91 * 24 * time.Hour, weir.Year: 365 * 24 * time.Hour,
}

// shortest is the shortest window, in seconds, that a log can be reported as too short for. A log of less than some
// minutes is a sample, and a limit of some minutes refuses in it what it would refuse anywhere.
const shortest = 60 * 60

// UnshownBy returns the limits among some that a log from first to last cannot show.
func UnshownBy(limits []weir.Limit, first, last time.Time) (all []Unshown) {
	length := float64(last.UnixNano())/1e9 - float64(first.UnixNano())/1e9 + 1 // stamps are of whole seconds
	for _, l := range limits {
		d := weir.Describe(l)
		u := Unshown{Count: d.Rate.Count, Window: d.Rate.Period.Seconds(), Log: length}
		enough := 0.99 * u.Window
		if d.Calendar != 0 {
			u.Count, u.Window, u.Unit = d.Capacity, units[d.Calendar].Seconds(), d.Calendar.String()
			enough = 0.92 * u.Window // a log of February shows a month
		}
		if u.Window >= shortest && length < enough {
			u.Limit = l.String()
			all = append(all, u)
		}
	}
	return all
}

// Pace completes u by the units of each key.
func (u *Unshown) Pace(keys iter.Seq[int64]) {
	for n := range keys {
		u.Most = max(u.Most, n)
		if u.reaches(n) > u.Count {
			u.Keys++
		}
	}
	u.Reaches = u.reaches(u.Most)
}

// reaches returns what n units in the log are in a window at the same pace, rounded down.
func (u *Unshown) reaches(n int64) int64 {
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(u.Window*1e3))
	length := max(uint64(u.Log*1e3), 1)
	if hi >= length {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, length)
	return int64(min(q, math.MaxInt64))
}

// unshown returns the limits of candidates that the traffic cannot show.
func (t *Traffic) unshown(r *Report, candidates []Candidate) (all []Unshown) {
	if t.events.n == 0 {
		return nil
	}
	var limits []weir.Limit
	for _, c := range candidates {
		limits = append(limits, c.Limits...)
	}
	all = slices.CompactFunc(UnshownBy(limits, r.First, r.Last), func(a, b Unshown) bool { return a.Limit == b.Limit })
	for i := range all {
		all[i].Pace(t.totals)
	}
	return all
}

// totals yields the units of each key.
func (t *Traffic) totals(yield func(int64) bool) {
	for id := range t.keys {
		sum := int64(0)
		for _, e := range t.of(id) {
			sum += int64(e.Cost)
		}
		if !yield(sum) {
			return
		}
	}
}
