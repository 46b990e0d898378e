package tape

import "time"

// Series is what happened over time, in steps of equal length. It is what a plot shows.
type Series struct {
	Every    time.Duration
	Offered  []int64 // units asked for within a step, with those of requests that came back
	Admitted []int64 // units that went ahead within a step
	Refused  []int64 // units refused within a step, with those of requests that come back
	Queued   []int64 // requests waiting at the end of a step: for the limit, for a delay, or for the server
}

// seriesSteps bounds the steps of a series.
const seriesSteps = 240

// NewSeries returns an empty series of a length in nanoseconds, above 0, in round steps.
func NewSeries(length uint64) Series { return SeriesOf(length, stepOf(length)) }

// SeriesOf is NewSeries with steps of a given length.
func SeriesOf(length uint64, every time.Duration) Series {
	s := Series{Every: every}
	n := int((length-1)/uint64(every)) + 1
	s.Offered, s.Admitted, s.Refused, s.Queued = make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	return s
}

// stepOf returns a step of 1, 2 or 5 times a power of ten, or of a round number of minutes, hours or days.
func stepOf(length uint64) time.Duration {
	for unit := time.Duration(1); unit < time.Second; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if length <= uint64(n*unit*seriesSteps) {
				return n * unit
			}
		}
	}
	for _, step := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	} {
		if length <= uint64(step*seriesSteps) {
			return step
		}
	}
	const day = 24 * time.Hour
	return (time.Duration(length/seriesSteps) + day) / day * day
}

// Offer adds units that were asked for at a time after the start.
func (s *Series) Offer(at uint64, units int64) { s.add(s.Offered, at, units) }

// Admit adds units that went ahead.
func (s *Series) Admit(at uint64, units int64) { s.add(s.Admitted, at, units) }

// Refuse adds units that were refused.
func (s *Series) Refuse(at uint64, units int64) { s.add(s.Refused, at, units) }

// Queue changes the number of waiting requests. The steps hold changes until Sum.
func (s *Series) Queue(at uint64, requests int64) { s.add(s.Queued, at, requests) }

// Sum turns the changes of Queued into numbers.
func (s *Series) Sum() {
	for i := 1; i < len(s.Queued); i++ {
		s.Queued[i] += s.Queued[i-1]
	}
}

// add ignores what happens after the last step.
func (s *Series) add(steps []int64, at uint64, n int64) {
	if step := at / uint64(s.Every); step < uint64(len(steps)) {
		steps[step] += n
	}
}
