package report

import (
	"fmt"

	"github.com/weirflow/weir/bench/internal/peers"
)

func (d *document) memory() {
	if len(d.results.Footprints) == 0 {
		return
	}
	var rows [][]string
	for _, f := range d.results.Footprints {
		rows = append(rows, []string{f.Peer, millions(f.Keys), fmt.Sprintf("%.1f", f.Heap), fmt.Sprintf("%.1f", f.Resident), ms(f.FullGC), ms(f.LeastGC)})
	}
	d.line("## Memory\n")
	d.line("The text of a key (16 bytes in the heap) counts if the peer keeps it. Resident memory includes memory that the process kept from earlier.\n")
	d.table([]string{"peer", "keys", "heap, bytes per key", "resident, bytes per key", "full collection, median", "least"}, rows)

	rows = nil
	for _, l := range d.results.Latencies {
		forgotten := "-"
		if l.Forgotten >= 0 {
			forgotten = fmt.Sprint(l.Forgotten)
		}
		rows = append(rows, []string{l.Phase, l.Peer, fmt.Sprint(l.Ops), l.Median.String(), l.P99.String(), l.P9999.String(), l.Max.String(), forgotten})
	}
	d.line("## Single decisions while the table grows and evicts\n")
	d.line("Each decision is timed on its own, including two readings of the clock. The loop does nothing, so its worst time is the machine's. Evicted keys are known only for peers that report their number of keys.\n")
	d.table([]string{"phase", "peer", "decisions", "median", "p99", "p99.99", "worst", "keys evicted"}, rows)
}

func (d *document) waiting() {
	w := d.results.Waiting
	if w == nil {
		return
	}
	d.line("## Waiting\n")
	d.line("A `Wait` that does not block: %.1f ns, `Allow` on the same limiter %.1f ns.\n", w.Wait.Median(), w.Allow.Median())
	var rows [][]string
	for _, l := range w.Lines {
		rows = append(rows, []string{fmt.Sprint(l.Waiters), l.Took.String(), fmt.Sprintf("%.0f", l.PerSecond), fmt.Sprint(l.OutOfOrder)})
	}
	d.line("Queued callers, released at 1e6/s. The order is that in which they ran again, which also depends on the scheduler.\n")
	d.table([]string{"callers", "released in", "per second", "neighbours that ran in reverse order"}, rows)
	rows = nil
	for _, l := range w.Lateness {
		rows = append(rows, []string{l.Name, fmt.Sprint(l.Turns), l.P50.String(), l.P99.String(), l.Max.String(), fmt.Sprintf("%.2f %%", 100*l.Drift)})
	}
	d.line("The lateness of turns at 1,000/s on the real clock.\n")
	d.table([]string{"limiter", "turns", "p50", "p99", "worst", "longer in total"}, rows)
}

// workload lists what the run asserted and what it tolerated.
func (d *document) workload() {
	c := d.results.Config
	d.line("## What was asserted\n")
	d.line("Every call of an allowed mix was admitted, no call of a denied mix was, and no call failed, except:\n")
	for _, p := range c.Singles {
		d.flaw(p.Info)
	}
	for _, p := range c.Keyeds {
		d.flaw(p.Info)
	}
	d.line("\nDistinct keys in the last measurement of the floor, within 2 %% of the expected number:\n")
	var rows [][]string
	for _, mix := range c.Mixes {
		for _, column := range d.columns(mix.Name) {
			if samples := d.results.Cells[column.of(peers.FloorTable)]; len(samples) > 0 {
				last := samples[len(samples)-1]
				rows = append(rows, []string{column.title(), fmt.Sprint(last.Ops), fmt.Sprint(last.Distinct)})
			}
		}
	}
	d.table([]string{"mix, outcome, cores", "calls", "distinct keys"}, rows)
}

// flaw describes the tolerated flaw of a peer and how often it occurred.
func (d *document) flaw(p peers.Info) {
	if p.Tolerated > 0 {
		d.line("- %s, which %s: at most %.2f %% of the calls of a measurement.", p.Name, p.Flaw, 100*d.mostUnexpected(p.Name))
	}
}

func (d *document) mostUnexpected(peer string) (most float64) {
	for cell, samples := range d.results.Cells {
		if cell.Peer != peer {
			continue
		}
		for _, s := range samples {
			most = max(most, s.Unexpected)
		}
	}
	return most
}
