// Program waitsim simulates processes whose callers wait for one limit, by the rules of package pace for engines at a
// distance: slots and rates that are asked for, and buckets that are booked. It takes the rules away one by one, so that
// its tables show what each of them is for.
//
//	go run ./bench/waitsim > bench/WAITING_SIM.md
//
// No real time passes, and no engine is asked. bench/waiting measures the real queue.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

const (
	seeds  = 3
	length = 30 * second
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(out, `# The rules of waiting, simulated

Written by %[1]sgo run ./bench/waitsim%[1]s; do not edit. Each figure is the mean of %[2]d seeds; "least" is the least process's
share of the greatest's, the worst of the seeds. A row with a minus is the same workload without one rule; a row with a plus has a
rule that was tried and left out. Virtual time, so the figures are the same on every machine.
`, "`", seeds)
	slotTables(out)
	bookTables(out)
	rateTables(out)
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "waitsim:", err)
		os.Exit(1)
	}
}

// variant is a workload's rules with one of them changed.
type variant[R any] struct {
	name   string
	change func(*R)
}

// table runs a workload once for each variant.
func table[R any](out io.Writer, name string, all R, variants []variant[R], run func(rules R, seed uint64) figures) {
	fmt.Fprintf(out, "\n## %s\n\n| rules | of the possible | calls a grant | calls a second | least | longest gap, ms | wide caller, ms |\n|---|---:|---:|---:|---:|---:|---:|\n", name)
	for _, v := range append([]variant[R]{{"all", func(*R) {}}}, variants...) {
		rules := all
		v.change(&rules)
		f := figures{least: 1}
		for seed := range uint64(seeds) {
			f.add(run(rules, seed+1))
		}
		fmt.Fprintf(out, "| %s | %.3f | %.2f | %.1f | %.2f | %d | %d |\n",
			v.name, f.share/seeds, f.calls/seeds, f.seconds/seeds, f.least, f.gap/ms, f.wide/ms)
	}
}

// add sums what is averaged, and keeps the worst of the rest.
func (f *figures) add(g figures) {
	f.share += g.share
	f.calls += g.calls
	f.seconds += g.seconds
	f.least = min(f.least, g.least)
	f.gap, f.wide = max(f.gap, g.gap), max(f.wide, g.wide)
}

func slotTables(out io.Writer) {
	usual := slotCase{processes: 4, callers: 10, slots: 8, hold: 40 * ms, trip: ms}
	with := func(name string, change func(*slotCase)) slotCase {
		w := usual
		w.name = name
		change(&w)
		return w
	}
	variants := []variant[askRules]{
		{"- spread", func(r *askRules) { r.spread = false }},
		{"- its growth", func(r *askRules) { r.growth = false }},
		{"- streak", func(r *askRules) { r.streak = false }},
		{"- one more travels", func(r *askRules) { r.more = false }},
		{"- keeping for a wide caller", func(r *askRules) { r.keep = false }},
		{"- rarer asks", func(r *askRules) { r.backoff = false }},
		{"+ doubled and halved instead", func(r *askRules) { r.halving = true }},
		{"+ the same, and age", func(r *askRules) { r.halving, r.age = true, true }},
	}
	for _, w := range []slotCase{
		with("8 slots, held for 40 ms, by 4 processes of 10 callers", func(*slotCase) {}),
		with("The same, and a process is killed each second", func(w *slotCase) { w.kills = second }),
		with("The same without signals", func(w *slotCase) { w.deaf = true }),
		with("The same, and half the signals are lost", func(w *slotCase) { w.lost = 50 }),
		with("The same by 50 processes", func(w *slotCase) { w.processes = 50 }),
		with("The same by 1,000 processes of one caller", func(w *slotCase) { w.processes, w.callers = 1000, 1 }),
		with("1 slot, held for 100 ms, by 4 processes of 2", func(w *slotCase) { w.slots, w.hold, w.callers = 1, 100*ms, 2 }),
		with("1 slot, held for 2 ms, by one process", func(w *slotCase) { w.slots, w.hold, w.processes, w.trip = 1, 2*ms, 1, ms/3 }),
		with("1 slot, held for 2 ms, by 4 processes of 2", func(w *slotCase) { w.slots, w.hold, w.callers = 1, 2*ms, 2 }),
		with("8 slots: 20 callers of one, and one of all 8, in one process", func(w *slotCase) { w.processes, w.callers, w.wide = 1, 20, 8 }),
		with("8 slots: the same beside a second process of 20", func(w *slotCase) { w.processes, w.callers, w.wide = 2, 20, 8 }),
		with("Slots that stay taken, and one process of 200 callers", func(w *slotCase) { w.processes, w.callers, w.idle = 1, 200, true }),
	} {
		table(out, w.name, allAskRules, variants, func(r askRules, seed uint64) figures { return simulateSlots(w, r, seed, length) })
	}
}

func bookTables(out io.Writer) {
	trips := []instant{300, ms, 10 * ms}
	near := []instant{ms, ms, ms}
	ones := []int64{1, 1, 1}
	variants := []variant[bookRules]{
		{"- random time", func(r *bookRules) { r.random = false }},
		{"- widening", func(r *bookRules) { r.widening = false }},
		{"- mark", func(r *bookRules) { r.mark = false }},
		{"- its draw (half the horizon)", func(r *bookRules) { r.drawn = false }},
		{"- a second at the latest", func(r *bookRules) { r.second = false }},
		{"+ at most 2n + 1 after n", func(r *bookRules) { r.growth = true }},
	}
	for _, w := range []bookCase{
		{name: "100/s booked by 3 processes of 10, 0.3, 1 and 10 ms away", unit: 10 * ms, burst: 1, trips: trips, costs: ones, callers: 10},
		{name: "10/s by the same", unit: 100 * ms, burst: 1, trips: trips, costs: ones, callers: 10},
		{name: "1/s by the same", unit: second, burst: 1, trips: trips, costs: ones, callers: 10},
		{name: "10/day by the same", unit: 8640 * second, burst: 1, trips: trips, costs: ones, callers: 10},
		{name: "100/s, costs of 100, 1 and 1", unit: 10 * ms, burst: 100, trips: near, costs: []int64{100, 1, 1}, callers: 10},
		{name: "100/s, costs of 1,000, 1 and 1", unit: 10 * ms, burst: 1000, trips: near, costs: []int64{1000, 1, 1}, callers: 10},
		{name: "200/s by 3 processes of 40", unit: 5 * ms, burst: 10, trips: near, costs: ones, callers: 40},
		{name: "The same, and a process is killed each second", unit: 5 * ms, burst: 10, trips: near, costs: ones, callers: 40, kills: second},
		{name: "1,000/s by 3 processes of 400", unit: ms, burst: 1, trips: near, costs: ones, callers: 400},
		manyBookers(50), manyBookers(200),
		{name: "36/h, and after 1,000 s a hundred times as much (the gap is of the time after)", unit: 100 * second, burst: 1, trips: near, costs: ones, callers: 10, raised: 1000 * second},
	} {
		long := max(2*length, 30*w.unit*w.costs[0])
		table(out, w.name, allBookRules, variants, func(r bookRules, seed uint64) figures { return simulateBooking(w, r, seed, long) })
	}
}

// manyBookers are n processes of one caller each.
func manyBookers(n int) bookCase {
	w := bookCase{name: fmt.Sprintf("%d processes of one caller book 100/s", n), unit: 10 * ms, burst: 1, callers: 1}
	for range n {
		w.trips, w.costs = append(w.trips, ms), append(w.costs, 1)
	}
	return w
}

func rateTables(out io.Writer) {
	variants := []variant[rateRules]{
		{"- one more travels", func(r *rateRules) { r.more = false }},
		{"+ told instants are spread", func(r *rateRules) { r.spread = true }},
	}
	for _, w := range []rateCase{
		{name: "A total of 100/s over 200 groups of one process", processes: 1, callers: 200, count: 100, period: second, trip: ms},
		{name: "A total of 100/s over 2,000 groups of one process", processes: 1, callers: 2000, count: 100, period: second, trip: ms},
		{name: "The same by 4 processes", processes: 4, callers: 2000, count: 100, period: second, trip: ms},
		{name: "A window of 100/s by 4 processes of 40", processes: 4, callers: 40, count: 100, period: second, aligned: true, trip: ms},
		{name: "A window of 100/s by 1,000 processes of one", processes: 1000, callers: 1, count: 100, period: second, aligned: true, trip: ms},
	} {
		table(out, w.name, allRateRules, variants, func(r rateRules, seed uint64) figures { return simulateRate(w, r, seed, length) })
	}
}
