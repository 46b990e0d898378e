// Package measure is the runner of all measuring programs. A program describes its rows, columns and targets in a Bench
// and calls Main, which reads the flags, measures the rows in turn, and writes the report. With -base, the rows of an
// earlier commit and of the present checkout take turns.
package measure

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"time"
)

// Bench describes a measuring program.
type Bench struct {
	Program string // its folder
	Title   string
	About   string // of the report, below the title
	Report  string // the file of the report
	Pairs   string // the file of the report of -base, "-" for standard output; "" if the program has no -base

	Reps   int           // measurements of each row
	Window time.Duration // of one measurement
	Rounds int           // of -base, each with PairReps measurements of PairWindow
	// The same for -base. Short windows that alternate meet the same changes of the machine's speed.
	PairReps   int
	PairWindow time.Duration

	Flags   func(*flag.FlagSet)                                         // defines further flags; may be nil
	Setup   func(context.Context) (place string, end func(), err error) // starts what all builds share, such as servers; may be nil
	Rows    func(*Options) ([]Row, error)
	Columns []Column
	Targets func([]Row) []Target
}

// Row is one thing that is measured. Tables show a group, with a line for each Line.
type Row struct {
	Group, Line string
	Column      string // splits a line into cells; "" if each figure has a column of its own
	Ours        bool   // it runs code of Weir
	Once        bool   // it takes long: once in a run, and never for -base
	Measure     func(context.Context, *Options) (Figures, error)
}

// Figures are the results of one measurement, by name.
type Figures map[string]float64

// Column is a figure in the tables.
type Column struct {
	Figure, Format string
	More           bool // more is better
}

// Options are the flags of a run.
type Options struct {
	Window       time.Duration
	Reps, Rounds int
	Quick        bool
	Only         *regexp.Regexp
	Out, Base    string
	Place        string // what Setup returned
	Command      string
	serve        bool
}

// Main runs the program and exits.
func (b *Bench) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.Run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", b.Program, err)
		os.Exit(1)
	}
}

// Run runs the program with these arguments.
func (b *Bench) Run(ctx context.Context, arguments []string) error {
	o, err := b.parse(arguments)
	if err != nil {
		return err
	}
	if b.Setup != nil && !o.serve {
		var end func()
		if o.Place, end, err = b.Setup(ctx); err != nil {
			return err
		}
		defer end()
	}
	rows, err := b.rows(o)
	if err != nil {
		return err
	}
	if o.serve {
		return Serve(os.Stdin, os.Stdout, func(name string) (Figures, error) { return measureNamed(ctx, o, rows, name) })
	}
	var text string
	began := time.Now()
	if o.Base != "" {
		text, err = b.comparePairs(ctx, o, rows, arguments)
	} else {
		text, err = b.measureAll(ctx, o, rows)
	}
	if err != nil {
		return err
	}
	text = strings.Replace(text, tookMark, time.Since(began).Round(time.Second).String(), 1)
	if o.Out == "-" {
		_, err = fmt.Print(text)
		return err
	}
	return os.WriteFile(o.Out, []byte(text), 0o644)
}

func (b *Bench) parse(arguments []string) (*Options, error) {
	o := &Options{Command: strings.TrimSpace("go run ./" + b.Program + " " + strings.Join(arguments, " "))}
	flags := flag.NewFlagSet(b.Program, flag.ContinueOnError)
	flags.IntVar(&o.Reps, "reps", 0, fmt.Sprintf("measurements of each row (default %d; with -base in each round, %d)", b.Reps, b.PairReps))
	flags.DurationVar(&o.Window, "window", 0, fmt.Sprintf("length of a measurement (default %v; with -base, %v)", b.Window, b.PairWindow))
	flags.BoolVar(&o.Quick, "quick", false, "a trial: one short measurement of each row, to standard output")
	only := flags.String("only", "", "measure the rows whose names match this `regular expression`, to standard output")
	flags.StringVar(&o.Out, "o", "", "the `file` of the report; - for standard output (default "+strings.TrimSuffix(b.Report+", "+b.Pairs, ", ")+")")
	if b.Pairs != "" {
		flags.StringVar(&o.Base, "base", "", "compare with this `commit`, which must compile with the present "+b.Program)
		flags.IntVar(&o.Rounds, "rounds", b.Rounds, "rounds of -base, each with new builds and processes")
		flags.BoolVar(&o.serve, "serve", false, "measure the rows that standard input names; -base starts such processes")
		flags.StringVar(&o.Place, "place", "", "what the processes of -base share")
	}
	if b.Flags != nil {
		b.Flags(flags)
	}
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	o.defaults(b, *only != "")
	if o.Reps < 1 || o.Window < 0 || o.Rounds < 0 || flags.NArg() > 0 {
		return nil, fmt.Errorf("-reps, -rounds and -window must be positive, and the arguments %q are not flags", flags.Args())
	}
	var err error
	if o.Only, err = regexp.Compile(*only); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	return o, nil
}

// defaults sets what was not given.
func (o *Options) defaults(b *Bench, some bool) {
	reps, window, out := b.Reps, b.Window, b.Report
	if o.Base != "" || o.serve {
		reps, window, out = b.PairReps, b.PairWindow, b.Pairs
	}
	if o.Quick {
		reps, window, o.Rounds = 1, window/20, min(o.Rounds, 1)
	}
	if some || o.Quick {
		out = "-"
	}
	if o.Reps == 0 {
		o.Reps = reps
	}
	if o.Window == 0 {
		o.Window = window
	}
	if o.Out == "" {
		o.Out = out
	}
}

// rows returns the selected rows.
func (b *Bench) rows(o *Options) (some []Row, err error) {
	all, err := b.Rows(o)
	if err != nil {
		return nil, err
	}
	for _, row := range all {
		if o.Only.MatchString(row.Name()) {
			some = append(some, row)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("-only %q: no row matches; a row is named like %q", o.Only, all[0].Name())
	}
	return some, nil
}

// measureAll measures each row once in each repetition, and returns the report.
func (b *Bench) measureAll(ctx context.Context, o *Options, rows []Row) (string, error) {
	r, p := NewResults(rows), &progress{began: time.Now()}
	for rep := range o.Reps {
		for _, row := range rows {
			if rep > 0 && row.Once {
				continue
			}
			p.tell("%d of %d: %s", rep+1, o.Reps, row.Name())
			figures, err := measureRow(ctx, o, row)
			if err != nil {
				return "", err
			}
			r.Add(row, figures)
		}
	}
	return b.text(r, o), nil
}

func measureRow(ctx context.Context, o *Options, row Row) (Figures, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	figures, err := row.Measure(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", row.Name(), err)
	}
	return figures, nil
}

func measureNamed(ctx context.Context, o *Options, rows []Row, name string) (Figures, error) {
	for _, row := range rows {
		if row.Name() == name {
			return measureRow(ctx, o, row)
		}
	}
	return nil, fmt.Errorf("no row is named %q", name)
}
