package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// summary counts the events of a run, so far or at its end.
type summary struct {
	took                       time.Duration
	phases                     int
	clock                      time.Duration // distance that it moved
	calls, decisions, refusals uint64
	saves, loads               uint64
	forgotten, overflow        uint64 // of replaced engines
	worst                      time.Duration
	rules                      []ruleSummary
	violations                 []string
}

type ruleSummary struct {
	text                      string
	decisions, refusals       uint64
	admitted, recorded, given int64
}

func (s *soaking) summary(start time.Time) summary {
	w := s.world
	sum := summary{
		took: time.Since(start), phases: s.number, clock: time.Duration(w.highest - firstInstant), calls: w.calls.Load(),
		saves: w.saves.Load(), loads: w.loads.Load(), forgotten: w.forgotten.Load(), overflow: w.overflow.Load(),
		worst: time.Duration(w.worst.Load()),
	}
	for _, r := range w.rules {
		one := ruleSummary{r.String(), r.decisions.Load(), r.refusals.Load(), r.admitted.Load(), r.recorded.Load(), r.given.Load()}
		sum.decisions += one.decisions
		sum.refusals += one.refusals
		sum.rules = append(sum.rules, one)
	}
	slices.SortFunc(sum.rules, func(a, b ruleSummary) int { return strings.Compare(a.text, b.text) })
	w.reports.Lock()
	defer w.reports.Unlock()
	sum.violations = slices.Clone(w.violations)
	return sum
}

// line returns a line of progress.
func (s summary) line() string {
	return fmt.Sprintf("soak: %v: %d phases, %d calls, %d decisions, %d saves, %d loads, worst %v, %d violations",
		s.took.Round(time.Second), s.phases, s.calls, s.decisions, s.saves, s.loads, s.worst, len(s.violations))
}

// print writes the report.
func (s summary) print(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "decisions\trefusals\tadmitted\trecorded\tgiven back\t rule")
	for _, r := range s.rules {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t %s\n", r.decisions, r.refusals, r.admitted, r.recorded, r.given, r.text)
	}
	t.Flush()
	fmt.Fprintf(out, "%d phases in %v, in which the clock went %v ahead\n", s.phases, s.took.Round(time.Millisecond), s.clock)
	fmt.Fprintf(out, "%d calls, %d decisions, %d refusals, the worst call took %v\n", s.calls, s.decisions, s.refusals, s.worst)
	fmt.Fprintf(out, "%d saves, %d loads, %d keys evicted, %d requests on shared budgets\n", s.saves, s.loads, s.forgotten, s.overflow)
	fmt.Fprintf(out, "%d violations\n", len(s.violations))
}
