package picture

import (
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
)

// countTicks marks about four whole numbers.
type countTicks struct{}

func (countTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	step := math.Max(1, niceStep((high-low)/4))
	for v := math.Ceil(low/step) * step; v <= high+step/1e6; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: count(v)})
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

// rounds are the distances of marks.
var rounds = []time.Duration{
	time.Nanosecond, time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond,
	time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 90 * 24 * time.Hour,
}

func (t timeTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	const most = 9
	span := time.Duration((high - low) * float64(time.Second))
	step := rounds[len(rounds)-1]
	for _, round := range rounds {
		if span/round <= most {
			step = round
			break
		}
	}
	offset := time.Duration(0)
	if !t.start.IsZero() {
		offset = t.start.Truncate(step).Sub(t.start)
	}
	for at := offset; at.Seconds() <= high+1e-9; at += step {
		if at.Seconds() >= low-1e-9 {
			ticks = append(ticks, plot.Tick{Value: at.Seconds(), Label: t.label(at, step)})
		}
	}
	return ticks
}

func (t timeTicks) label(at, step time.Duration) string {
	switch {
	case !t.labels:
		return ""
	case t.start.IsZero():
		return shortTime(at)
	case step >= 24*time.Hour:
		return t.start.Add(at).UTC().Format("2 Jan")
	case t.start.Add(at).UTC().Truncate(24 * time.Hour).Equal(t.start.Add(at).UTC()):
		return t.start.Add(at).UTC().Format("2 Jan")
	case step < time.Minute:
		return t.start.Add(at).UTC().Format("15:04:05")
	}
	return t.start.Add(at).UTC().Format("15:04")
}

// shortTime writes 1m for a minute and 2d for two days.
func shortTime(d time.Duration) string {
	const day = 24 * time.Hour
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

// shorten cuts a text that is longer than most runes.
func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
