package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/simulate"
)

// neverEnds stands for the figures of a phase where a caller gave up.
const neverEnds = "never"

// table returns the run for people: rates, seconds and bursts of each phase, then the notes.
func (c classic) table(s screen.Screen) string {
	var b strings.Builder
	b.WriteString(s.Wrap("Limits of 10/s with a burst of 10. Each column offers requests for 10 s at its rate, to a fresh state.\n"+
		"A refused caller retries every 10 ms until admitted, for up to a minute.\n\n", 0))
	c.write(&b, s, "requests per second", func(r simulate.PhaseReport) string { return cli.Fixed(r.Rate) })
	c.write(&b, s, "seconds", func(r simulate.PhaseReport) string { return cli.Fixed(r.Seconds) })
	c.write(&b, s, "most in any second", func(r simulate.PhaseReport) string { return cli.Thousands(r.Most) })
	notes := fmt.Sprintf("%s: a caller retried for a minute and was not admitted, so the phase stopped.\n\nnotes\n", neverEnds)
	notes += notesOf(c.limits) + "\nbad examples\n" + notesOf(c.bad) + "\nrounding\n"
	for _, f := range c.faults {
		notes += fmt.Sprintf("  %s, at %d/s, polled every %s for %s: admits %s where %s are due\n",
			f.Name, f.PerSecond, cli.Duration(f.Every), cli.Duration(f.Over), cli.Thousands(f.Admitted), cli.Thousands(f.Due))
	}
	return b.String() + s.Wrap(notes, 4)
}

// write adds one figure of all subjects in all phases.
func (c classic) write(b *strings.Builder, s screen.Screen, title string, figure func(simulate.PhaseReport) string) {
	t := screen.Table{Columns: []screen.Column{{Title: title}}}
	for i, p := range c.phases {
		t.Columns = append(t.Columns, screen.Column{Title: fmt.Sprintf("%d/s", p.PerSecond), Rank: len(c.phases) - i})
	}
	for i := 0; i < len(c.reports); i += len(c.phases) {
		if i == len(c.limits)*len(c.phases) {
			t.Rows = append(t.Rows, []string{"bad examples:"})
		}
		row := []string{c.reports[i].Algorithm}
		for _, r := range c.reports[i : i+len(c.phases)] {
			cell := neverEnds
			if r.Ended {
				cell = figure(r)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	b.WriteString(s.Table(t) + "\n")
}

func notesOf(subjects []simulate.Subject) (notes string) {
	for _, s := range subjects {
		if s.Note != "" {
			notes += fmt.Sprintf("  %s: %s\n", s.Name, s.Note)
		}
	}
	return notes
}

// comparisonPicture shows what each limit did over time.
func comparisonPicture(c simulate.Comparison) picture.Timeline {
	t := picture.Timeline{Title: cli.Printable(c.Traffic), Unit: "requests"}
	if c.Units != c.Requests {
		t.Unit = "units"
	}
	for _, l := range c.Limits {
		t.Every = l.Series.Every
		t.Panels = append(t.Panels, picture.Panel{Name: cli.Printable(l.Limit), Offered: l.Series.Offered, Admitted: l.Series.Admitted, Queued: l.Series.Queued, Refused: l.Series.Refused})
	}
	return t
}

// classic is a run of the classic driver.
type classic struct {
	limits, bad []simulate.Subject
	phases      []simulate.Phase
	reports     []simulate.PhaseReport // of the limits, then of the bad examples
	faults      []PollReport
}

func newClassic() (c classic, err error) {
	if c.limits, err = classicLimits(); err != nil {
		return c, err
	}
	c.bad = badExamples(classicRate)
	if c.faults, err = RoundingFaults(); err != nil {
		return c, err
	}
	driver := simulate.ClassicDriver()
	c.phases = driver.Phases
	c.reports, err = driver.Run(append(c.limits[:len(c.limits):len(c.limits)], c.bad...)...)
	return c, err
}

// classicRate is the rate, per second, and the burst of every limit and bad example.
const classicRate = 10

// classicLimits returns every limit that has a rate, at 10 requests per second with a burst of 10.
func classicLimits() ([]simulate.Subject, error) {
	rate := weir.PerSecond(classicRate)
	limits := []weir.Limit{
		weir.TokenBucket{Rate: rate, Burst: classicRate},
		weir.LeakyBucket{Rate: rate, Queue: classicRate - 1},
		weir.FixedWindow{Rate: rate},
		weir.FirstWindow{Rate: rate},
		weir.SlidingWindow{Rate: rate},
		weir.SlidingLog{Rate: rate},
		weir.SlidingLog{Rate: rate, CountDenied: true},
		weir.RateGate{Rate: rate},
		weir.Cycle{Rate: rate},
		weir.Bursty{Rate: rate, Over: time.Second},
		weir.WarmUp{Rate: rate, Over: time.Second},
		weir.NginxLimitReq{Rate: rate, Burst: classicRate - 1, NoDelay: true},
	}
	subjects := make([]simulate.Subject, len(limits))
	for i, limit := range limits {
		s, err := simulate.NewSubject(limit)
		if err != nil {
			return nil, err
		}
		s.Note = weir.Describe(limit).Note
		subjects[i] = s
	}
	return subjects, nil
}
