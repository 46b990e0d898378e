// Command compare runs Weir and its rivals with the same workload and writes the results to RESULTS.md and
// RESULTS.svg.
//
//	go run ./bench/cmd/compare            everything
//	go run ./bench/cmd/compare -quick     a trial; its figures mean nothing
//	go run ./bench/cmd/compare -peers 'floor|tokenbucket|sethvargo' -mixes 'one key|zipf'
//	go run ./bench/cmd/compare -base v1.0.0    decisions of Weir before and after, in pairs of windows; writes PAIRS.md
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/report"
	"github.com/weirflow/weir/bench/internal/workload"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	peers, mixes       *regexp.Regexp
	repetitions        int
	duration           time.Duration
	quick, all         bool
	memory, waiting    bool
	keys, large, fresh int
	out                string
	base               string
	rounds             int
	serve              bool
}

func run(arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	if o.serve {
		return measure.Serve(os.Stdin, os.Stdout, measure.NewWindows(o.config()).Measure)
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil { // fails now rather than after a quarter of an hour
		return err
	}
	if o.base != "" {
		return comparePairs(o, arguments)
	}
	results, err := measure.Run(o.config())
	if err != nil {
		return err
	}
	return write(results, o.out, "go run ./bench/cmd/compare "+strings.Join(arguments, " "))
}

func comparePairs(o options, arguments []string) error {
	p := pairs{options: o, flags: arguments, log: progress(time.Now())}
	found, err := p.run()
	if err != nil {
		return err
	}
	return writePairs(o.out, o, machine("go run ./bench/cmd/compare "+strings.Join(arguments, " ")), changes(found))
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	selected := flags.String("peers", "", "run only peers whose name matches this regular expression; floors always run")
	mixes := flags.String("mixes", "", `run only mixes whose name matches this regular expression ("one limiter" selects single limiters)`)
	flags.IntVar(&o.repetitions, "repetitions", 10, "number of measurements of everything")
	flags.DurationVar(&o.duration, "duration", 50*time.Millisecond, "length of each measurement")
	flags.BoolVar(&o.quick, "quick", false, "a trial: two repetitions of 5 ms, and a tenth of the keys for memory")
	flags.BoolVar(&o.all, "all", false, "run all of Weir's algorithms with a million keys, not only the representative ones")
	flags.BoolVar(&o.memory, "memory", true, "measure bytes per key, collections and worst decisions")
	flags.BoolVar(&o.waiting, "waiting", true, "measure waiting callers")
	flags.IntVar(&o.keys, "keys", 1_000_000, "keys of every peer when measuring memory")
	flags.IntVar(&o.large, "large", 10_000_000, "keys of Weir's limiters when measuring memory; 0 skips this")
	flags.IntVar(&o.fresh, "fresh", 1<<20, "new keys in each measurement of new keys")
	flags.StringVar(&o.base, "base", "", "compare with this commit in pairs of windows, and write PAIRS.md")
	flags.IntVar(&o.rounds, "rounds", 4, "rounds for -base")
	flags.BoolVar(&o.serve, "serve", false, "measure windows of the cells on standard input; -base starts such processes")
	flags.StringVar(&o.out, "out", "bench", "the folder of RESULTS.md and RESULTS.svg, or PAIRS.md")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.base != "" {
		o.forPairs(flags, selected)
	}
	if o.quick {
		o.repetitions, o.duration, o.rounds = 2, 5*time.Millisecond, 2
		o.keys, o.large, o.fresh = o.keys/10, o.large/10, o.fresh/4
	}
	if o.repetitions < 1 || o.duration <= 0 || o.keys < 1 || o.large < 0 || o.fresh < 512 || o.rounds < 1 || flags.NArg() > 0 {
		return o, fmt.Errorf("repetitions, rounds, duration and keys must be positive, fresh at least 512, and the arguments %q are not flags", flags.Args())
	}
	var err error
	if o.peers, err = regexp.Compile(*selected); err != nil {
		return o, fmt.Errorf("-peers: %w", err)
	}
	if o.mixes, err = regexp.Compile(*mixes); err != nil {
		return o, fmt.Errorf("-mixes: %w", err)
	}
	return o, nil
}

// forPairs sets the defaults of flags that differ with -base: only Weir's peers, and short windows.
func (o *options) forPairs(flags *flag.FlagSet, selected *string) {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["peers"] {
		*selected = "^weir_"
	}
	if !given["repetitions"] {
		o.repetitions = 6
	}
	if !given["duration"] {
		o.duration = 20 * time.Millisecond
	}
}

func (o options) config() measure.Config {
	c := measure.Config{
		All: o.all, Repetitions: o.repetitions, Duration: o.duration, Cores: []int{1},
		Memory: o.memory, MemoryKeys: o.keys, LargeKeys: o.large, Waiting: o.waiting, LateTurns: 3000,
		Progress: progress(time.Now()),
	}
	if runtime.NumCPU() > 1 {
		c.Cores = append(c.Cores, 2)
	}
	if o.quick {
		c.LateTurns = 300
	}
	if o.mixes.MatchString(measure.SingleMix) {
		c.Singles = slices.DeleteFunc(peers.Singles(), func(p peers.SinglePeer) bool { return o.leavesOut(p.Info) })
	}
	c.Mixes = slices.DeleteFunc(workload.Mixes(o.fresh), func(m *workload.Mix) bool { return !o.mixes.MatchString(m.Name) })
	c.Keyeds = slices.DeleteFunc(peers.Keyeds(), func(p peers.KeyedPeer) bool { return o.leavesOut(p.Info) })
	return c
}

func (o options) leavesOut(p peers.Info) bool {
	return p.Kind != peers.Floor && p.Kind != peers.Harness && !o.peers.MatchString(p.Name)
}

func progress(start time.Time) func(string, ...any) {
	return func(format string, values ...any) {
		fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, values...))
	}
}

func write(r *measure.Results, folder, command string) error {
	const document, picture = "RESULTS.md", "RESULTS.svg"
	facts := machine(command)
	if len(r.Config.Mixes) > 0 {
		facts.Plot = picture
		if err := report.Plot(r, filepath.Join(folder, picture)); err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(folder, document))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := report.Write(out, r, facts); err != nil {
		return err
	}
	return out.Close()
}
