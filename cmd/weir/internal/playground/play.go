package playground

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/simulate"
)

// Bounds of what one picture shows. The figures are of all attempts.
const (
	mostLimits  = 2
	mostShown   = 5000 // attempts of a limit
	mostSamples = 480  // of a level
	longestPlay = 24 * time.Hour
	mostUnits   = 1_000_000 // admitted requests; the most in any second is drawn
)

// play is traffic against one limit or two, in virtual time.
type play struct {
	Limits  []string `json:"limits"`
	Traffic string   `json:"traffic"`
	For     string   `json:"for"` // a duration
	Seed    uint64   `json:"seed"`
	Each    bool     `json:"each"` // each client has a limit of its own
}

// Played is the outcome of a play.
type Played struct {
	Comparison simulate.Comparison `json:"comparison"` // as weir simulate --format json has it
	Limits     []Course            `json:"limits"`
}

// Course is the course of one limit, as pictures show it. Times are seconds after the start.
type Course struct {
	Attempts []Attempt `json:"attempts"`
	Unshown  int64     `json:"unshown,omitempty"` // further attempts
	Left     bool      `json:"left"`              // Level is what is left; otherwise it is what counts
	Capacity int64     `json:"capacity,omitempty"`
	Every    float64   `json:"every"`           // between two samples
	Level    []int64   `json:"level,omitempty"` // of the first client that asks; none of a limit without a level
	Second   []int64   `json:"second"`          // the most that went ahead within any second that ends in a step
	Window   float64   `json:"window,omitempty"`
	Phase    float64   `json:"phase,omitempty"` // when a window begins
}

// Attempt is one attempt. Retry is when its client may come again, in seconds from then on: -1 is never.
type Attempt struct {
	At     float64 `json:"at"`
	Client int     `json:"client"`
	Cost   int64   `json:"cost"`
	Again  int     `json:"again,omitempty"` // how often its client has come back
	Passed bool    `json:"passed"`
	Delay  float64 `json:"delay,omitempty"`
	Retry  float64 `json:"retry,omitempty"`
}

func (p *play) run() (Played, error) {
	length, err := p.check()
	if err != nil {
		return Played{}, err
	}
	pattern, err := simulate.ParsePattern(p.Traffic)
	if err != nil {
		return Played{}, plain.LimitError("traffic", err, plain.TrafficForms)
	}
	if logs := pattern.Logs(); len(logs) > 0 {
		return Played{}, plain.Misuse(fmt.Errorf("traffic: the log %s is not here", plain.Quoted(logs[0])), "open it under Your log")
	}
	var courses []*course
	for _, text := range p.Limits {
		limits, err := limitsOf(text)
		if err != nil {
			return Played{}, err
		}
		c, err := newCourse(limits, length, p.Each)
		if err != nil {
			return Played{}, plain.Misuse(err, plain.LimitForms...)
		}
		courses = append(courses, c)
	}
	played := Played{}
	played.Comparison, err = pattern.Compare(p.Limits, simulate.Scenario{Length: length, Seed: p.Seed, PerClient: p.Each,
		Attempts: func(a simulate.Attempt) { courses[a.Limit].add(a) }})
	for i := 0; i < len(courses) && err == nil; i++ {
		played.Limits = append(played.Limits, courses[i].done())
		err = courses[i].err
	}
	if err != nil {
		return Played{}, plain.Misuse(fmt.Errorf("traffic: %s", plain.Message(err)), "less traffic, or a shorter time, fits")
	}
	return played, nil
}

// check returns the length.
func (p *play) check() (time.Duration, error) {
	if len(p.Limits) == 0 || len(p.Limits) > mostLimits {
		return 0, plain.Misusef("give one limit, or two to compare", "play: %d limits, want 1 or %d", len(p.Limits), mostLimits)
	}
	length, err := time.ParseDuration(p.For)
	if err != nil || length < time.Millisecond || length > longestPlay {
		return 0, plain.Misusef("it is a duration like 500ms, 10s or 1h30m; weir simulate takes up to 366 days",
			"time: %s is not from 1ms to %s", plain.Quoted(p.For), plain.Duration(longestPlay))
	}
	return length, nil
}

// levelOf says what a picture shows of a key, if anything.
func levelOf(limits []weir.Limit) (left, shown bool) {
	left = true
	for _, limit := range limits {
		d := weir.Describe(limit)
		if d.Owes || d.Stateless && d.Capacity > 0 {
			return false, false
		}
		if d.Refill == weir.RefillWindow || d.Refill == weir.RefillEach || d.Held {
			left = false
		}
	}
	return left, true
}
