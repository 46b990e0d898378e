package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/simulate"
)

// trafficTexts are an example of each traffic.
var trafficTexts = []string{"constant 50/s", "poisson 50/s", "burst 200/s for 1s every 10s", "ramp 1/s to 100/s over 1m"}

// compare tries the limits on the traffic and writes the result to out.
func (o *simulateOptions) compare(out io.Writer) error {
	forms := "traffic looks like: " + strings.Join(trafficTexts, ", ") + "; join several with 'and'"
	pattern, err := simulate.ParsePattern(o.traffic)
	switch {
	case err != nil:
		return limitTextError("--traffic", err, []string{forms})
	case len(o.limits) == 0:
		return usageWithHint(errors.New("simulate: no --limit to try"), "for example: weir simulate --traffic 'poisson 9/s' --limit 'token bucket 10/s burst 20'")
	case o.length <= 0 || o.length > weir.MaxPeriod:
		return usageWithHint(fmt.Errorf("--for: %s is not above 0 and at most 366 days", shortDuration(o.length)), "it is a duration like 500ms, 10s or 1h30m")
	}
	candidates := make([]simulate.Candidate, len(o.limits))
	for i, text := range o.limits {
		if candidates[i], err = simulate.ParseCandidate(text); err != nil {
			return limitTextError("--limit", err, limitForms)
		}
	}
	c, err := pattern.Compare(candidates, o.length, o.seed)
	if err != nil {
		return errorWithHint(errors.New("simulate: "+inner(err)), "shorten the time with --for, or lower the rate of the traffic")
	}
	return writeSimulation(out, o.format, c, func() string { return comparisonTable(c) })
}

// comparisonTable returns the comparison for people.
func comparisonTable(c simulate.Comparison) string {
	var b strings.Builder
	length := time.Duration(c.Seconds * float64(time.Second))
	fmt.Fprintf(&b, "%s for %s: %s of one key\n\n", printable(c.Traffic), shortDuration(length), plural(c.Requests, "request"))
	head := []string{"limit", "admitted", "refused", "share"}
	offered := []string{"(the traffic)", "", "", ""}
	for i, window := range simulate.ComparisonWindows() {
		head = append(head, "most in "+shortDuration(window))
		offered = append(offered, thousands(c.Most[i]))
	}
	rows := [][]string{append(head, "starved s", "delay p50", "p99"), append(offered, "", "", "")}
	for _, l := range c.Limits {
		row := []string{printable(l.Limit), thousands(l.Admitted), thousands(l.Refused), percent(l.Refused, c.Requests)}
		for _, most := range l.Most {
			row = append(row, thousands(most))
		}
		rows = append(rows, append(row, fixed(l.Starved), fixed(l.DelayP50), fixed(l.DelayP99)))
	}
	writeRows(&b, "", rows)
	b.WriteString("\nmost: the largest number that goes ahead within any such time.\n" +
		"starved: seconds of the longest run of refusals. delay: seconds that admitted requests are held.\n")
	return b.String()
}
