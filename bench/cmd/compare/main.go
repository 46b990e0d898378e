// Command compare measures decisions of Weir and its rivals with the same workload, their memory, and waiting callers.
//
//	go run ./bench/cmd/compare            everything; writes bench/RESULTS.md
//	go run ./bench/cmd/compare -quick     a trial; its figures mean nothing
//	go run ./bench/cmd/compare -only '^(floor|weir_keyed_tokenbucket|sethvargo).*(one key|zipf)'
//	go run ./bench/cmd/compare -busy -reps 3     a few rows beside a process that keeps the cores busy, to standard output
//	go run ./bench/cmd/compare -base v1.0.0    decisions of Weir before and after, in pairs of windows, to standard output
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

var all bool

func main() {
	if len(os.Args) > 1 && os.Args[1] == busyFlag {
		if err := spin(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var bench *measure.Bench
	bench = &measure.Bench{
		Program: "bench/cmd/compare", Title: "Decisions in memory", About: about(),
		Report: "bench/RESULTS.md", Pairs: "-",
		Reps: 10, Window: 50 * time.Millisecond, Rounds: 4, PairReps: 6, PairWindow: 20 * time.Millisecond,
		Flags: func(flags *flag.FlagSet) {
			flags.BoolVar(&all, "all", false, "all of Weir's algorithms with a million keys, not only the representative ones")
			flagBusy(flags, bench)
		},
		Rows: rows,
		Columns: []measure.Column{
			{Figure: "ns", Format: "%.1f"}, {Figure: "allocations", Format: "%.2f allocs"},
			{Figure: bytesAKey, Format: "%.1f"}, {Figure: "resident bytes", Format: "%.1f"}, {Figure: collectionMs, Format: "%.2f"},
			{Figure: "callers/s", Format: "%.0f", More: true}, {Figure: "out of order", Format: "%.0f"},
		},
		Targets: targets,
	}
	bench.Main()
}

func about() string {
	text := `bench/README.md says how decisions are measured. The time is that of the processor on one core, and the time that passed on two.
Every call of an allowed mix was admitted, no call of a denied mix was, no call failed, and the number of distinct keys was the
expected one. Otherwise the run fails, except that`
	for _, p := range peers.Keyeds() {
		if p.Kind == peers.Exact && p.Tolerated > 0 {
			text += fmt.Sprintf(" %s %s (up to %.0f %% of the calls), and that", p.Name, p.Flaw, 100*p.Tolerated)
		}
	}
	return text + " rate gates may refuse a call\nwhose clock reading is before that of the preceding one."
}

// rows returns all rows. Rows that share a limiter follow one another.
func rows(o *measure.Options) (list []measure.Row, err error) {
	fresh := 1 << 20
	switch {
	case o.Quick:
		fresh = 1 << 14
	case o.Base != "":
		fresh = 1 << 17
	}
	for i, group := range append([][]*workload.Mix{{singleMix}}, groups(workload.Mixes(fresh))...) {
		of := peers.Keyeds()
		if i == 0 {
			of = peers.Singles()
		}
		for _, denied := range []bool{false, true} {
			for _, peer := range of {
				cannot := denied && (group[0].Fresh || peer.AllowedOnly) // every limit admits a fresh key
				if !cannot && !leavesOut(peer, group[0].Keys) {
					list = append(list, rowsOf(peer, group, denied)...)
				}
			}
		}
	}
	for _, peer := range peers.Keyeds() {
		if !leavesOut(peer, fewKeys+1) {
			list = append(list, memoryRow(peer, o.Quick))
		}
	}
	list = append(list, clocklessRows()...)
	list = append(list, measure.Row{Group: released, Line: "weir", Ours: true, Measure: releaseLine})
	if busy != nil {
		list = busy.rows(list)
	}
	if o.Base != "" { // rivals do not change; floors show how far luck alone moves a figure
		list = slices.DeleteFunc(list, func(r measure.Row) bool { return !r.Ours && !strings.HasPrefix(r.Line, "floor") })
	}
	return list, nil
}

const fewKeys = 100_000

// leavesOut reports whether a peer is not measured with this number of keys.
func leavesOut(peer peers.Peer, keys int) bool { return peer.Brief && !all && keys > fewKeys }

// groups returns the mixes in groups; one filled peer serves the mixes of a group in turn.
func groups(mixes []*workload.Mix) (all [][]*workload.Mix) {
	for _, mix := range mixes {
		last := len(all) - 1
		if last >= 0 && !mix.Fresh && all[last][0].Keys == mix.Keys && all[last][0].LogPeriod == mix.LogPeriod {
			all[last] = append(all[last], mix)
			continue
		}
		all = append(all, []*workload.Mix{mix})
	}
	return all
}
