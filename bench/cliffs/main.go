// Command cliffs measures whether the numbers in a limit change the cost of a decision. It prints a table of the
// nanoseconds of one decision of a Limiter, a Keyed and a Memory, all admitted and all refused, for limits whose
// instants are whole nanoseconds, small fractions and fine fractions, and for rules of several limits.
//
//	go run ./cliffs                 prints the table
//	go run ./cliffs -json new.json  also saves the figures
//	go run ./cliffs -with old.json  prints the figures of both, and their ratios
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	save := flag.String("json", "", "save the figures to this `file`")
	with := flag.String("with", "", "compare with the figures in this `file`")
	only := flag.String("only", "", "measure only rows whose name contains this `text`")
	window := flag.Duration("window", 3*time.Millisecond, "length of one measured window")
	windows := flag.Int("windows", 60, "windows of each figure; the smallest counts")
	flag.Parse()
	figures := measureAll(*only, *window, *windows)
	earlier, err := load(*with)
	if err == nil {
		err = keep(*save, figures, earlier)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cliffs:", err)
		os.Exit(1)
	}
	printTable(os.Stdout, figures, earlier)
}

// load returns the figures in a file, or none without a name.
func load(name string) (figures map[string]float64, err error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &figures)
	}
	return figures, err
}

// keep saves the smaller of each figure and the one already in the file, so that several runs make one measurement.
func keep(name string, figures, _ map[string]float64) error {
	if name == "" {
		return nil
	}
	before, err := load(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for cell, ns := range before {
		if got, measured := figures[cell]; !measured || ns < got {
			figures[cell] = ns
		}
	}
	text, err := json.MarshalIndent(figures, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
