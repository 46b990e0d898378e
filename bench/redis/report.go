package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// report returns the text of bench/REDIS.md.
func report(m []string, r results, repetitions int, took time.Duration) string {
	var b strings.Builder
	b.WriteString("# Redis: measured\n\n")
	b.WriteString("Written by `make bench-redis`; what it measures and how is in docs/performance.md. One redis-server on the loopback\n")
	b.WriteString("interface, and a cluster of three; nothing on disk. Client and servers share the cores, so that rates are of this machine,\n")
	b.WriteString("and CPU times carry over.\n\n")
	for _, line := range m {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- %d repetitions, in each of which every row was measured once on empty servers; %s in all\n", repetitions, took.Round(time.Second))
	fmt.Fprintf(&b, "- %s\n", quiet(r))
	b.WriteString("\n## Targets\n\nRatios within a repetition: the median, and the least and the greatest. A miss counts only where no repetition reached the aim.\n\n")
	b.WriteString("| target | aim | measured | |\n|---|---|---:|---|\n")
	for _, t := range targets() {
		b.WriteString(targetRow(t, t.ratios(r)))
	}
	singleTables(&b, r)
	batchTable(&b, r)
	clusterTable(&b, r)
	return b.String()
}

// rows returns the figures of some cells, without a heading.
func rows(cells []cell, r results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| row%s|---|---:|---:|---:|---:|---:|---:|---:|\n", tableHead)
	for _, c := range cells {
		fmt.Fprintf(&b, "| %s %s", c.id(), figures(r[c.id()]))
	}
	return b.String()
}

// quiet describes the load of other programs.
func quiet(r results) string {
	var shares []float64
	for _, samples := range r {
		for _, s := range samples {
			shares = append(shares, 100*s.others)
		}
	}
	return fmt.Sprintf("other programs took %.0f %% of the processors during a row at the median, %.0f %% at most", median(shares), slices.Max(shares))
}

func targetRow(t target, ratios []float64) string {
	measured := "-"
	if len(ratios) > 0 {
		measured = fmt.Sprintf("%.3g × (%.3g to %.3g)", median(ratios), slices.Min(ratios), slices.Max(ratios))
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", t.name, t.aim(), measured, t.verdict(ratios))
}

const tableHead = " | decisions/s | p50 µs | p99 µs | client CPU µs | Redis CPU µs | in script µs | errors |\n"

func singleTables(b *strings.Builder, r results) {
	b.WriteString("\n## One decision a call\n\nMedians. CPU and the time in scripts (commandstats; of throttled only its second step) are of one decision, which was\nadmitted. Latency is of a call.\n")
	for _, keys := range []int{manyKeys, 1} {
		title := fmt.Sprintf("%d keys", keys)
		if keys == 1 {
			title = "one key"
		}
		fmt.Fprintf(b, "\n| %s: peer | callers%s|---|---:|---:|---:|---:|---:|---:|---:|---:|\n", title, tableHead)
		for _, callers := range callerCounts {
			for _, p := range singles() {
				fmt.Fprintf(b, "| %s | %d %s", p.name, callers, figures(r[id{peer: p.name, callers: callers, keys: keys, batch: 1}]))
			}
		}
	}
	for _, p := range singles() {
		if p.flawed != "" {
			fmt.Fprintf(b, "\nThe errors of %s are known: %s. Its other columns are of the decisions it made.\n", p.name, p.flawed)
		}
	}
}

func batchTable(b *strings.Builder, r results) {
	fmt.Fprintf(b, "\n## A batch of %d from one goroutine\n\nThe bare script reads all keys by one MGET, as ours does, and writes each by a SET. Logs, gates and slots are as long as their\nlimit lets them be: for each unit that comes another one leaves, or all are refused.\n", batchSize)
	fmt.Fprintf(b, "\n| limit | keys | outcome%s|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n", tableHead)
	row := func(name string, keys int, refused bool) {
		outcome := "admitted"
		if refused {
			outcome = "refused"
		}
		fmt.Fprintf(b, "| %s | %d | %s %s", name, keys, outcome, figures(r[id{peer: name, callers: 1, keys: keys, batch: batchSize, refused: refused}]))
	}
	row(nameBareBatch, manyKeys, false)
	row(nameBareBatch, fewKeys, false)
	for _, a := range algorithms() {
		row(a.name, a.keys(), false)
		row(a.name, a.keys(), true)
	}
}

// clusterTable compares the cluster with the single server.
func clusterTable(b *strings.Builder, r results) {
	fmt.Fprintf(b, "\n## A cluster of three masters\n\n%d keys, beside the same on the single server. All servers and the client share the cores, so this shows what a\ncluster costs, not what it would gain on machines of its own. CPU is that of all servers together.\n", manyKeys)
	fmt.Fprintf(b, "\n| peer | callers | on%s|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n", tableHead)
	row := func(name, callers string, at id) {
		on := "one server"
		if at.cluster {
			on = "the cluster"
		}
		if samples := r[at]; len(samples) > 0 {
			fmt.Fprintf(b, "| %s | %s | %s %s", name, callers, on, figures(samples))
		}
	}
	both := func(name, callers string, at id) {
		row(name, callers, at)
		at.cluster = true
		row(name, callers, at)
	}
	for _, callers := range callerCounts {
		for _, p := range clustered() {
			both(p.name, fmt.Sprint(callers), id{peer: p.name, callers: callers, keys: manyKeys, batch: 1})
		}
	}
	both(nameWeir, fmt.Sprintf("1, batches of %d", batchSize), id{peer: nameWeir, callers: 1, keys: manyKeys, batch: batchSize})
}

func figures(samples []sample) string {
	if len(samples) == 0 {
		return "| - | - | - | - | - | - | - |\n"
	}
	of := func(get func(sample) float64) float64 {
		var values []float64
		for _, s := range samples {
			values = append(values, get(s))
		}
		return median(values)
	}
	failed := of(func(s sample) float64 { return s.errors })
	return fmt.Sprintf("| %.0f | %.0f | %.0f | %.2f | %.2f | %.2f | %.3g %% |\n",
		of(perSecond), of(p50), of(p99), of(client), of(redisCPU), of(inScript), failed*100)
}
