package report

import (
	"time"

	"github.com/weirflow/weir/simulate"
)

// chart is one of weir.chart in the package page, for the script. X is either a list or regular steps of time.
type chart struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Answer  string   `json:"answer"`
	X       []int64  `json:"x,omitempty"`
	From    float64  `json:"from,omitempty"`  // the first step, in seconds
	Every   float64  `json:"every,omitempty"` // of each step
	Day     []int64  `json:"day,omitempty"`   // when the part begins and ends that links show, in seconds
	Series  []series `json:"series"`
	Flags   []int64  `json:"flags,omitempty"`
	Marks   []mark   `json:"marks,omitempty"`
	XName   string   `json:"xName,omitempty"`
	Time    bool     `json:"time,omitempty"`
	Elapsed bool     `json:"elapsed,omitempty"`
	Stacked bool     `json:"stacked,omitempty"`
	LogX    bool     `json:"logX,omitempty"`
	ZeroY   bool     `json:"zeroY,omitempty"`
	Height  int      `json:"height,omitempty"`
}

type series struct {
	Name   string   `json:"name"`
	Colour string   `json:"colour"`
	Values []*int64 `json:"values"` // nil: no value there
	Area   bool     `json:"area,omitempty"`
	Steps  bool     `json:"steps,omitempty"`
	Dots   bool     `json:"dots,omitempty"`
}

// mark is a line across the chart at a value of x, or of y.
type mark struct {
	Name   string `json:"name"`
	X      *int64 `json:"x,omitempty"`
	Y      *int64 `json:"y,omitempty"`
	Colour string `json:"colour,omitempty"`
}

// timeline shows what a limit does over time.
func timeline(s simulate.Series, start time.Time) chart {
	c := chart{
		Every: s.Every.Seconds(), Stacked: true, Flags: s.Refused,
		Series: []series{
			{Name: "admitted", Colour: "admitted", Values: values(s.Admitted), Area: true, Steps: true},
			{Name: "refused", Colour: "refused", Values: values(s.Refused), Area: true, Steps: true},
		},
	}
	if start.IsZero() {
		c.Elapsed = true
	} else {
		c.Time, c.From = true, float64(start.UnixNano())/1e9
	}
	return c
}

// worstDay returns the day of UTC with most refusals, the first of several, and false if all is within one day or none is refused.
func worstDay(s simulate.Series, start time.Time) (day time.Time, ok bool) {
	refused, days := map[int64]int64{}, int64(0)
	at := func(i int) int64 { return start.Add(time.Duration(i)*s.Every).Unix() / daySeconds }
	for i, n := range s.Refused {
		refused[at(i)] += n
	}
	worst := int64(-1)
	for d, n := range refused {
		if days++; n > 0 && (worst < 0 || n > refused[worst] || n == refused[worst] && d < worst) {
			worst = d
		}
	}
	return time.Unix(worst*daySeconds, 0).UTC(), worst >= 0 && days > 1
}

const daySeconds = 24 * 60 * 60

func values(counts []int64) []*int64 {
	all := make([]*int64, len(counts))
	for i := range counts {
		all[i] = &counts[i]
	}
	return all
}
