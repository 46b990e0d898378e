// Package trial is what the programs that torment Weir share: the flags of a run and its report (Trial), the ledger of a
// key (Account), and the checker of bounds (WorstWindow).
package trial

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
)

// Trial is one run. Its methods are safe for concurrent use.
type Trial struct {
	Program  string // its folder
	About    string // the beginning of its help
	Duration time.Duration
	Seed     uint64
	Faults   []string // that the program can commit deliberately, to show that it detects them
	Fault    string   // the one to commit
	Quiet    bool
	Report   func(io.Writer) error // writes the report, instead of Write; may be nil

	flags  *flag.FlagSet
	errs   io.Writer
	begun  time.Time
	mu     sync.Mutex
	groups []string
	counts map[string]map[string]int64
	times  map[string][]time.Duration
	notes  []string
	broken []Broken
}

// Broken is a broken promise with its first example.
type Broken struct {
	Promise, First string
	At             time.Duration
	Times          int
}

// Flags defines the flags of every run. The program defines its own ones beside them.
func (t *Trial) Flags(flags *flag.FlagSet) {
	t.flags = flags
	flags.DurationVar(&t.Duration, "duration", t.Duration, "length of the run")
	flags.Uint64Var(&t.Seed, "seed", rand.Uint64N(1_000_000), "seed of all choices; random by default")
	if len(t.Faults) > 0 {
		flags.StringVar(&t.Fault, "break", "", "commit this fault deliberately: "+strings.Join(t.Faults, ", "))
	}
}

// Main runs a program, whose run function has parsed flags. It returns the exit code: 0 without a broken promise, 1 with
// one, and 2 if the run failed.
func (t *Trial) Main(args []string, out, errs io.Writer, define func(*flag.FlagSet), run func() error) int {
	flags := flag.NewFlagSet(t.Program, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintf(errs, "%s\n\nThe exit code is 0 without a broken promise, 1 with one, and 2 if the run failed. A run with a broken promise prints its seed.\n\n", t.About)
		flags.PrintDefaults()
	}
	t.Flags(flags)
	define(flags)
	t.errs = errs
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = t.validate()
	}
	if err == nil {
		t.Say("%s", t.Command())
		t.Begin()
		err = run()
	}
	if err != nil {
		fmt.Fprintf(errs, "%s: %v\n", t.Program, err)
		return 2
	}
	if t.Report == nil {
		t.Write(out)
	} else if err := t.Report(out); err != nil {
		fmt.Fprintf(errs, "%s: %v\n", t.Program, err)
		return 2
	}
	if len(t.Violations()) > 0 {
		fmt.Fprintln(errs, "repeat with:", t.Command())
		return 1
	}
	return 0
}

func (t *Trial) validate() error {
	switch {
	case t.Duration <= 0:
		return fmt.Errorf("-duration %v is not positive", t.Duration)
	case t.Fault != "" && !slices.Contains(t.Faults, t.Fault):
		return fmt.Errorf("-break %q: nothing of that name can be broken; choose one of %s", t.Fault, strings.Join(t.Faults, ", "))
	}
	return nil
}

// Begin starts the clock of the run.
func (t *Trial) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun, t.counts, t.times = time.Now(), map[string]map[string]int64{}, map[string][]time.Duration{}
}

// Since returns the time since the beginning.
func (t *Trial) Since() time.Duration { return time.Since(t.begun) }

// Command returns the command line that repeats the run.
func (t *Trial) Command() string {
	text := "go run ./" + t.Program
	if t.flags == nil {
		return fmt.Sprintf("%s -duration %v -seed %d", text, t.Duration, t.Seed)
	}
	t.flags.VisitAll(func(f *flag.Flag) {
		if f.Name == "duration" || f.Name == "seed" || f.Value.String() != f.DefValue {
			text += fmt.Sprintf(" -%s %s", f.Name, f.Value)
		}
	})
	return text
}

// Say tells progress.
func (t *Trial) Say(format string, values ...any) {
	if t.errs != nil && !t.Quiet {
		fmt.Fprintf(t.errs, format+"\n", values...)
	}
}

// Break records a broken promise.
func (t *Trial) Break(promise, format string, values ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.broken {
		if t.broken[i].Promise == promise {
			t.broken[i].Times++
			return
		}
	}
	b := Broken{promise, fmt.Sprintf(format, values...), t.Since(), 1}
	t.broken = append(t.broken, b)
	t.Say("%v: %s: %s", b.At.Round(time.Millisecond), promise, b.First)
}

// Violations returns the broken promises.
func (t *Trial) Violations() []Broken {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.broken)
}

// Count adds n to what a group of counts tells.
func (t *Trial) Count(group, what string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[group] == nil {
		t.counts[group] = map[string]int64{}
		t.groups = append(t.groups, group)
	}
	t.counts[group][what] += n
}

// Counted returns a count.
func (t *Trial) Counted(group, what string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[group][what]
}

// Timed records how long something took.
func (t *Trial) Timed(what string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times[what] = append(t.times[what], took)
}

// Note adds a line to the report.
func (t *Trial) Note(format string, values ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, fmt.Sprintf(format, values...))
}

// Write writes the report.
func (t *Trial) Write(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(out, "%s\ncommit %s, %v\n\n", t.Command(), measure.Commit(), t.Since().Round(time.Second))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, group := range t.groups {
		fmt.Fprintf(w, "%s\t%s\n", group, texts(t.counts[group]))
	}
	_ = w.Flush()
	if len(t.times) > 0 {
		fmt.Fprintln(w, "\ntimes\tmedian\t99 %\t99.99 %\tlongest")
		for _, what := range sortedKeys(t.times) {
			all := t.times[what]
			slices.Sort(all)
			at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))].Round(10 * time.Microsecond) }
			fmt.Fprintf(w, "%s\t%v\t%v\t%v\t%v\n", what, at(0.5), at(0.99), at(0.9999), at(1))
		}
		_ = w.Flush()
	}
	for _, note := range t.notes {
		fmt.Fprintln(out, note)
	}
	if len(t.broken) == 0 {
		fmt.Fprintln(out, "\nno promise was broken")
		return
	}
	fmt.Fprintf(out, "\n%d promises were broken:\n", len(t.broken))
	for _, b := range t.broken {
		fmt.Fprintf(out, "- %s (%d times, first after %v): %s\n", b.Promise, b.Times, b.At.Round(time.Millisecond), b.First)
	}
}

func texts(counts map[string]int64) string {
	var all []string
	for _, what := range sortedKeys(counts) {
		all = append(all, fmt.Sprintf("%d %s", counts[what], what))
	}
	return strings.Join(all, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
