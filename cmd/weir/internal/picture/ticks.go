package picture

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// tick is a mark of an axis.
type tick struct {
	value float64
	label string
}

// numberTicks marks about six round numbers.
func numberTicks(low, high float64) []tick { return roundTicks(low, high, niceStep((high-low)/6)) }

// countTicks marks about four whole numbers.
func countTicks(low, high float64) []tick {
	return roundTicks(low, high, math.Max(1, niceStep((high-low)/4)))
}

func roundTicks(low, high, step float64) (ticks []tick) {
	for v := math.Ceil(low/step) * step; v <= high+step/1e6; v += step {
		if math.Abs(v) < step/1e6 {
			v = 0
		}
		ticks = append(ticks, tick{v, count(v)})
	}
	return ticks
}

// decades marks 1, 2 and 5 of each power of ten, or only powers of ten if there are many.
func decades(low, high float64) (ticks []tick) {
	steps := []float64{1, 2, 5}
	if high/low > 1e4 {
		steps = steps[:1]
	}
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for _, step := range steps {
			if v := decade * step; v >= low && v <= high {
				ticks = append(ticks, tick{v, count(v)})
			}
		}
	}
	return ticks
}

// niceStep returns 1, 2 or 5 times a power of ten, not below the given step.
func niceStep(least float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(math.Max(least, 1e-9))))
	for _, n := range []float64{1, 2, 5} {
		if n*unit >= least*(1-1e-9) {
			return n * unit
		}
	}
	return 10 * unit
}

// count writes a number with k, M or G for thousands.
func count(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= 10*unit.size || math.Abs(v) >= unit.size && math.Mod(v, unit.size/10) == 0 {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// timeTicks marks round times. With a start they are times of the day, in UTC.
type timeTicks struct {
	start  time.Time
	labels bool
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// rounds are the distances of marks.
var rounds = []time.Duration{
	time.Nanosecond, time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond,
	time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 30 * day, 90 * day, year, 2 * year, 5 * year, 10 * year, 20 * year, 50 * year, 100 * year,
}

// ticks marks values between low and high, which may span more seconds than a time.Duration.
func (t timeTicks) ticks(low, high float64) (list []tick) {
	const most = 10
	step := rounds[len(rounds)-1]
	for _, round := range rounds {
		if high-low < most*round.Seconds() {
			step = round
			break
		}
	}
	slack := step.Seconds() / 1e6
	for at := t.first(step); ; at = t.next(at, step) {
		value := float64(at.Unix()-t.start.Unix()) + float64(at.Nanosecond()-t.start.Nanosecond())/1e9
		if value > high+slack {
			return list
		}
		if value >= low-slack {
			list = append(list, tick{value, t.label(at, step)})
		}
	}
}

// first returns the last mark before the start or at it.
func (t timeTicks) first(step time.Duration) time.Time {
	if years := int(step / year); years > 0 && !t.start.IsZero() {
		return time.Date(t.start.UTC().Year()/years*years, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t.start.Truncate(step)
}

func (t timeTicks) next(at time.Time, step time.Duration) time.Time {
	if years := int(step / year); years > 0 && !t.start.IsZero() {
		return at.AddDate(years, 0, 0)
	}
	return at.Add(step)
}

func (t timeTicks) label(at time.Time, step time.Duration) string {
	at = at.UTC()
	switch {
	case !t.labels:
		return ""
	case t.start.IsZero():
		return shortTime(at.Sub(time.Time{}))
	case step >= year:
		return at.Format("2006")
	case step > 30*day:
		return at.Format("Jan 2006")
	case step >= day, at.Truncate(day).Equal(at):
		return at.Format("2 Jan")
	case step < time.Minute:
		return at.Format("15:04:05")
	}
	return at.Format("15:04")
}

// shortTime writes 1m for a minute and 2d for two days.
func shortTime(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
