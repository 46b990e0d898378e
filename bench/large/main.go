// Command large fills the memory engine with ten million keys of each kind of entry. It measures their memory, full
// collections, a save, a load, and each decision while the engine grows and while it evicts idle keys. A run whose
// workload differs from its description fails.
//
//	go run ./large                     prints the report
//	go run ./large -write LARGE.md     writes it to a file
//	go run ./large -keys 100000        tries it out
//	go run ./large -rounds 1           measures each kind once; otherwise a figure is the median of three rounds
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/workload"
)

// kind is a kind of entry, and the most bytes that a key may take.
type kind struct {
	name   string
	limits []weir.Limit
	most   float64
}

var kinds = []kind{
	{"one word: 10/s", []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(10)}}, 28},
	{"one word: fixed window 100/d", []weir.Limit{weir.FixedWindow{Rate: weir.PerDay(100)}}, 28},
	{"one word: cycle 100/d", []weir.Limit{weir.Cycle{Rate: weir.PerDay(100)}}, 28},
	{"fine fraction: 333/s", []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(333)}}, 40},
	{"two limits: 5/m and 100/d", []weir.Limit{weir.TokenBucket{Rate: weir.PerMinute(5)}, weir.TokenBucket{Rate: weir.PerDay(100)}}, 44},
}

func main() {
	keys := flag.Int("keys", 10_000_000, "number of keys of each kind, up to 60 million")
	rounds := flag.Int("rounds", 3, "measure each kind `n` times")
	write := flag.String("write", "", "write the report to this `file` instead of the standard output")
	flag.Parse()
	if err := run(*keys, *rounds, *write); err != nil {
		fmt.Fprintln(os.Stderr, "large:", err)
		os.Exit(1)
	}
}

func run(keys, rounds int, write string) error {
	if rounds < 1 {
		return fmt.Errorf("-rounds %d is below 1", rounds)
	}
	begun := time.Now()
	draws := workload.Fresh(0, keys+keys/2) // the second part is of new keys
	times := make([]uint32, keys)
	bare := spread(bareLoop(times))
	measured := make([][]figure, len(kinds))
	for round := range rounds {
		for i, k := range kinds {
			fmt.Fprintf(os.Stderr, "large: round %d of %d: %s\n", round+1, rounds, k.name)
			f, err := measure(k, draws, keys, times)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			measured[i] = append(measured[i], f)
		}
	}
	var report bytes.Buffer
	printReport(&report, measured, bare, keys, begun)
	if write == "" {
		_, err := os.Stdout.Write(report.Bytes())
		return err
	}
	return os.WriteFile(write, report.Bytes(), 0o644)
}
