package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

const (
	busyFlag  = "-busy-only" // starts the busy process instead of the bench
	busyShare = 0.05         // of the cores, which the busy process has at least: other programs may be busy, too
)

// busy is a process that keeps the cores busy while rows are measured; nil without -busy.
var busy *busyProcess

type busyProcess struct {
	child *measure.Child[string, float64]
	began time.Time
}

// flagBusy defines -busy. Its figures are for standard output: the report is of a quiet machine.
func flagBusy(flags *flag.FlagSet, bench *measure.Bench) {
	flags.BoolFunc("busy", "a few rows beside a process that keeps the cores busy, to standard output", func(string) error {
		busy, bench.Report = &busyProcess{}, "-"
		bench.Setup = busy.start
		return nil
	})
}

// spin keeps the cores busy until standard input ends. It answers each line with the seconds of processor time that it had.
func spin() error {
	for range runtime.NumCPU() {
		go func() {
			for block := make([]byte, 1<<20); ; {
				sum := sha256.Sum256(block)
				copy(block, sum[:])
			}
		}()
	}
	return measure.Serve(os.Stdin, os.Stdout, func(string) (float64, error) { return measure.ProcessorTime().Seconds(), nil })
}

func (b *busyProcess) start(context.Context) (place string, end func(), err error) {
	b.began = time.Now()
	b.child, err = measure.StartChild[string, float64](os.Args[0], busyFlag)
	return "", b.child.Stop, err
}

// rows returns the rows that the targets of -busy name. Each fails if the process did not run.
func (b *busyProcess) rows(all []measure.Row) (list []measure.Row) {
	for _, r := range all {
		named := slices.ContainsFunc(b.targets(), func(t measure.Target) bool {
			return slices.ContainsFunc(t.Cases, func(c measure.Case) bool { return c.Row == r.Name() || slices.Contains(c.Over, r.Name()) })
		})
		if !named {
			continue
		}
		alone := r.Measure
		r.Measure = func(ctx context.Context, o *measure.Options) (measure.Figures, error) {
			figures, err := alone(ctx, o)
			if err == nil {
				err = b.ran()
			}
			return figures, err
		}
		list = append(list, r)
	}
	return list
}

func (b *busyProcess) ran() error {
	used, err := b.child.Ask("")
	if share := used / time.Since(b.began).Seconds() / float64(runtime.NumCPU()); err == nil && share < busyShare {
		return fmt.Errorf("the busy process had %.3f of the cores, want %v at least", share, busyShare)
	}
	return err
}

func (*busyProcess) targets() []measure.Target {
	singles, keyeds := exact()
	return []measure.Target{
		over("`Limiter.Allow`, over the fastest rival", 0.95, limiterBucket, singles, singleMix.Name),
		over("`Memory`, one key, over sethvargo", 1, memoryBucket, []string{peers.Sethvargo}, workload.OneKey),
		over("`Keyed`, "+fresh+", over the fastest exact rival", 0.5, keyedBucket, keyeds, fresh),
	}
}
