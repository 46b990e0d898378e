package replay

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// Busiest tells how much each key asks for within a length of time at most: in the busiest second, minute or hour that it
// has, wherever that begins. It counts units, which are requests if each costs 1.
type Busiest struct {
	Seconds float64 `json:"seconds"` // the length of time; the end of such a stretch is not part of it
	P50     int64   `json:"p50"`     // half of the keys never ask for more
	P90     int64   `json:"p90"`     // nine in ten never ask for more
	P99     int64   `json:"p99"`
	P999    int64   `json:"p999"`
	Most    int64   `json:"most"`
	Above   []Above `json:"-"` // for each number of units that is the most of some key, in order, up to Most
	keys    int
}

// Above counts the keys that ever ask for more than some units.
type Above struct {
	Units int64
	Keys  int
}

// Exceeding returns the number of keys that ever ask for more than these units.
func (b Busiest) Exceeding(units int64) int {
	i, found := slices.BinarySearchFunc(b.Above, units, func(a Above, units int64) int { return cmp.Compare(a.Units, units) })
	switch {
	case found:
		return b.Above[i].Keys
	case i > 0:
		return b.Above[i-1].Keys
	}
	return b.keys
}

// BusiestOf tells how many requests each key makes at most within a second, a minute, an hour and a day, if the requests
// last that long. It is given the instants of the requests of each key, in nanoseconds since the Unix epoch and in order
// of time, and may go through them several times.
func BusiestOf(instants iter.Seq[[]int64], first, last time.Time) []Busiest {
	var events []Event
	return busiest(windowsOf(nil), first.UnixNano(), last.UnixNano(), func(yield func([]Event) bool) {
		for times := range instants {
			events = events[:0]
			for _, at := range times {
				events = append(events, Event{At: at, Cost: 1})
			}
			if !yield(events) {
				return
			}
		}
	})
}

func (t *Traffic) busiest(windows []time.Duration) []Busiest {
	if t.events.n == 0 {
		return []Busiest{}
	}
	return busiest(windows, t.first, t.last, func(yield func([]Event) bool) {
		for key := range t.keys {
			if !yield(t.of(key)) {
				return
			}
		}
	})
}

// busiest measures the windows that are no longer than the traffic.
func busiest(windows []time.Duration, first, last int64, ofKeys iter.Seq[[]Event]) []Busiest {
	all := []Busiest{}
	for _, window := range windows {
		if uint64(window) > max(tape.Since(first, last)+1, uint64(time.Second)) {
			continue
		}
		counts, keys := map[int64]int{}, 0
		for events := range ofKeys {
			counts[mostWithinAny(window, events)]++
			keys++
		}
		all = append(all, busiestOf(window, counts, keys))
	}
	return all
}

// busiestOf summarises how many keys have each number of units as their most.
func busiestOf(window time.Duration, counts map[int64]int, keys int) Busiest {
	b := Busiest{Seconds: window.Seconds(), keys: keys}
	seen := 0
	for _, units := range slices.Sorted(maps.Keys(counts)) {
		seen += counts[units]
		for _, p := range []struct {
			permille int
			at       *int64
		}{{500, &b.P50}, {900, &b.P90}, {990, &b.P99}, {999, &b.P999}} {
			if (seen-counts[units])*1000 < p.permille*keys {
				*p.at = units
			}
		}
		b.Most = units
		b.Above = append(b.Above, Above{units, keys - seen})
	}
	return b
}

// mostWithinAny returns the most units within any half-open stretch of the length. The events are in order of time.
func mostWithinAny(length time.Duration, events []Event) (most int64) {
	first, sum := 0, int64(0)
	for _, e := range events {
		for tape.Since(events[first].At, e.At) >= uint64(length) {
			sum -= int64(events[first].Cost)
			first++
		}
		sum += int64(e.Cost)
		most = max(most, sum)
	}
	return most
}

// windowsOf returns the lengths that people think in, and the periods of the candidates.
func windowsOf(candidates []Candidate) []time.Duration {
	windows := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	const most = 8
	for _, c := range candidates {
		for _, limit := range c.Limits {
			if period := weir.Describe(limit).Rate.Period; period > 0 && len(windows) < most {
				windows = append(windows, period)
			}
		}
	}
	slices.SortFunc(windows, cmp.Compare[time.Duration])
	return slices.Compact(windows)
}
