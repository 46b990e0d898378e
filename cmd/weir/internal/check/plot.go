package check

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/internal/replay"
)

// limitPicture shows how a limit gives out its units.
func limitPicture(c replay.Candidate) (picture.Picture, error) {
	if t, ok, err := throttleOf(c.Limits[0]); ok || err != nil {
		return throttlePicture(c.Text, t, err)
	}
	permits, ok, err := permitsOf(c)
	switch {
	case err != nil:
		return nil, cli.Fail(fmt.Errorf("check: %w", err), "this is a bug in weir: please report it with the limit text")
	case !ok:
		return nil, cli.Misuse(fmt.Errorf("check: --plot: %s gives no units at a rate", cli.Printable(c.Text)), "plot a limit with a rate, like: token bucket 10/s burst 20")
	}
	unit, name := unitOf(permits.Length)
	given := picture.Line{Name: cli.Printable(c.Text), Steps: true, Points: []picture.Point{{}}}
	for _, step := range permits.Steps {
		given.Points = append(given.Points, picture.Point{X: float64(step.At) / float64(unit), Y: float64(step.Total)})
	}
	last := given.Points[len(given.Points)-1].Y
	given.Points = append(given.Points, picture.Point{X: float64(permits.Length) / float64(unit), Y: last})
	return picture.Chart{
		Title: "a caller that takes all it may, after a pause",
		X:     name, Y: "units so far",
		Lines: []picture.Line{given, rateLine(c, permits.Length, unit)},
	}, nil
}

// rateLine is the rate alone, without a burst.
func rateLine(c replay.Candidate, length, unit time.Duration) picture.Line {
	rate := c.Rate()
	return picture.Line{Name: rate.String() + " without a burst", Dashed: true, Points: []picture.Point{
		{}, {X: float64(length) / float64(unit), Y: float64(rate.Count) * float64(length) / float64(rate.Period)},
	}}
}

// unitOf returns a unit of time that makes a length a small number.
func unitOf(length time.Duration) (time.Duration, string) {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "hours"}, {time.Minute, "minutes"}, {time.Second, "seconds"}, {time.Millisecond, "milliseconds"}, {time.Microsecond, "microseconds"}} {
		if length >= 2*u.unit {
			return u.unit, u.name
		}
	}
	return time.Nanosecond, "nanoseconds"
}

// throttlePicture shows how far apart the units of a warm up are, by the units that a pause has stored.
func throttlePicture(text string, t throttle, err error) (picture.Picture, error) {
	if err != nil {
		return nil, cli.Fail(fmt.Errorf("check: %w", err), "this is a bug in weir: please report it with the limit text")
	}
	unit, name := unitOf(t.Cold)
	in := func(d time.Duration) float64 { return float64(d) / float64(unit) }
	measured := picture.Line{Name: "a limiter that begins cold", Dots: true}
	for _, p := range t.Measured {
		measured.Points = append(measured.Points, picture.Point{X: p.Stored, Y: in(p.Each)})
	}
	return picture.Chart{
		Title: cli.Printable(text) + ": the throttling curve",
		X:     "units stored in a pause", Y: name + " between units",
		Lines: []picture.Line{
			{Name: "Guava's curve", Points: []picture.Point{{Y: in(t.Stable)}, {X: t.Threshold, Y: in(t.Stable)}, {X: t.Ceiling, Y: in(t.Cold)}}},
			measured,
		},
		Marks: []picture.Mark{{Name: "threshold", At: t.Threshold}, {Name: "ceiling", At: t.Ceiling}},
	}, nil
}
