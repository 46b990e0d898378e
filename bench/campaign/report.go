package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/trial"
)

// publish writes the report, and the events around each broken promise.
func (r *result) publish(c *config, out io.Writer) error {
	text := r.text(c)
	if len(r.broken) > 0 {
		if err := r.writeDetails(c); err != nil {
			return err
		}
	}
	if c.report == "" {
		_, err := io.WriteString(out, text)
		return err
	}
	return os.WriteFile(c.report, []byte(text), 0o644)
}

func (r *result) text(c *config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A campaign against Redis\n\nWritten by `%s`, which says what it breaks and checks (`go doc ./bench/campaign`).\n\n", c.Command())
	fmt.Fprintf(&b, "- seed %d, %v, %d processes, from %s\n", c.Seed, c.Duration, c.processes, r.begun.UTC().Format("2006-01-02 15:04 UTC"))
	for _, line := range r.machine {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- **%d broken promises**\n\n", len(r.broken))
	r.writeBroken(&b)
	r.writeFaults(&b)
	r.writeUnwell(&b)
	r.writeBounds(&b)
	r.writeLines(&b)
	r.writeLate(&b)
	r.writeCounts(&b)
	return b.String()
}

// mostNear is how many faults a broken promise names.
const mostNear = 30

func (r *result) writeBroken(b *strings.Builder) {
	if len(r.broken) == 0 {
		return
	}
	b.WriteString("## Broken promises\n\n| promise | servers | when | what | faults at that time |\n|---|---|---|---|---|\n")
	for i, one := range r.broken {
		if i == 50 {
			fmt.Fprintf(b, "| and %d more | | | | |\n", len(r.broken)-i)
			break
		}
		var near []string
		for _, f := range r.faultsNear(&one) {
			near = append(near, f.Kind)
		}
		if len(near) > mostNear {
			near = []string{fmt.Sprintf("%d faults", len(near))}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", one.Promise, worldNames[one.World], r.after(one.From), one.Text, strings.Join(near, ", "))
	}
	b.WriteString("\n")
}

// faultsNear returns the faults up to ten seconds before a broken promise.
func (r *result) faultsNear(one *broken) (near []fault) {
	const before = 10_000_000
	for _, f := range r.worlds[one.World].faults {
		if f.From <= one.To && f.To >= one.From-before {
			near = append(near, f)
		}
	}
	return near
}

// after returns the time from the beginning of the campaign to an instant.
func (r *result) after(instant int64) time.Duration {
	return (time.Duration(instant-r.from) * time.Microsecond).Round(time.Millisecond)
}

func (r *result) writeFaults(b *strings.Builder) {
	b.WriteString("## Faults\n\n| fault | server | sentinel | cluster |\n|---|---:|---:|---:|\n")
	counts := map[string]*[3]int{}
	for number, w := range r.worlds {
		for _, f := range w.faults {
			if counts[f.Kind] == nil {
				counts[f.Kind] = &[3]int{}
			}
			counts[f.Kind][number]++
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		n := counts[kind]
		fmt.Fprintf(b, "| %s | %d | %d | %d |\n", kind, n[0], n[1], n[2])
	}
}

// writeUnwell lists the times for which the servers were not well soon enough after a fault.
func (r *result) writeUnwell(b *strings.Builder) {
	begun := false
	for _, number := range slices.Sorted(maps.Keys(r.worlds)) {
		for _, f := range r.worlds[number].faults {
			if f.Kind != unwell {
				continue
			}
			if !begun {
				b.WriteString("\nServers that were not well in time; until they are, the table's grant for a loss applies:\n\n| servers | from | to | after |\n|---|---|---|---|\n")
				begun = true
			}
			to := "the end"
			if f.To != never {
				to = r.after(f.To).String()
			}
			fmt.Fprintf(b, "| %s | %v | %s | %s |\n", worldNames[number], r.after(f.From), to, strings.ReplaceAll(f.Detail, "\n", " "))
		}
	}
}

func (r *result) writeBounds(b *strings.Builder) {
	b.WriteString("\n## Bounds\n\nThe worst window of all keys under a limit: by how many units it was below what the bound and the table allow. A window\ncounts a call only if the call began and ended in it.\n\n| limit | units below |\n|---|---:|\n")
	for _, text := range slices.Sorted(maps.Keys(r.closest)) {
		fmt.Fprintf(b, "| %s | %.1f |\n", text, max(-r.closest[text], 0))
	}
	admitted, units := 0, 0.0
	for _, a := range r.accounts {
		admitted += len(a.used)
		for _, u := range a.used {
			units += u.Units
		}
	}
	fmt.Fprintf(b, "\n%d keys; %d admitted calls of %.0f units.\n", len(r.accounts), admitted, units)
}

func (r *result) writeCounts(b *strings.Builder) {
	b.WriteString("\n## Operations\n\n| | |\n|---|---:|\n")
	events := map[string]bool{}
	for of := range r.counts {
		events[of.what] = true
	}
	for _, what := range slices.Sorted(maps.Keys(events)) {
		fmt.Fprintf(b, "| %s | %d |\n", what, r.count(what))
	}
}

// mostDetails bounds the broken promises that are written in detail.
const mostDetails = 20

// writeDetails writes what happened around each broken promise.
func (r *result) writeDetails(c *config) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.Join(r.machine, "\n"))
	for i := range r.broken[:min(len(r.broken), mostDetails)] {
		r.writeDetail(&b, &r.broken[i])
	}
	return os.WriteFile(c.details, []byte(b.String()), 0o644)
}

func (r *result) writeDetail(b *strings.Builder, one *broken) {
	fmt.Fprintf(b, "\n%s, %s, %v to %v (%d to %d): %s\n", one.Promise, worldNames[one.World], r.after(one.From), r.after(one.To), one.From, one.To, one.Text)
	for _, f := range r.faultsNear(one) {
		fmt.Fprintf(b, "  fault   %v to %v  %s  %s  lanes %b\n", r.after(f.From), r.after(f.To), f.Kind, f.Detail, f.Lanes)
	}
	fmt.Fprintf(b, "  machine a sleep was late by up to %v\n", time.Duration(r.busy.latest(one.From-busySince.Microseconds(), one.To))*time.Microsecond)
	if one.Subject < 0 {
		return
	}
	a := r.account(one.World, one.Subject)
	lists := map[string][]trial.Span{"used": a.used, "returned": a.returned, "perhaps": a.unanswered, "reset": a.resets, "held": a.held, "lost": a.lost,
		"waited": a.waited, "waited, rate": a.waitedRate, "taken": a.taken, "perhaps taken": a.perhapsTaken}
	for _, what := range slices.Sorted(maps.Keys(lists)) {
		list := slices.Clone(lists[what])
		slices.SortFunc(list, func(x, y trial.Span) int { return cmp.Compare(x.From, y.From) })
		for _, s := range list {
			if s.From <= one.To+2_000_000 && s.To >= one.From-2_000_000 {
				fmt.Fprintf(b, "  %-13s %v to %v  %.0f units  %s\n", what, time.Duration(s.From-r.from)*time.Microsecond, time.Duration(min(s.To, r.to+1)-r.from)*time.Microsecond, s.Units, s.By)
			}
		}
	}
}
