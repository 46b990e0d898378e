// Program replay measures weir replay on a large log, which it makes beforehand: the wall time, the processor time and
// the memory of the process.
//
//	go run ./bench/replay                     ten million lines, 3 GB in the temporary folder; writes bench/REPLAY.md
//	go run ./bench/replay -lines 10000 -o -   a trial; prints figures that mean nothing
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
)

var lines int

const (
	group = "weir replay"
	wall  = "seconds"
	mib   = "MiB"
)

// job is a run of weir replay and its bounds.
type job struct {
	name    string
	flags   []string
	seconds float64
	mib     float64
}

var jobs = []job{
	{"two limits", []string{"--limit", "token bucket 1/s burst 10", "--limit", "sliding window 60/1m"}, 20, 1024},
	{"a suggestion", []string{"--suggest", "refuse 0.1%"}, 60, 1024},
}

func main() { bench.Main() }

var bench = &measure.Bench{
	Program: "bench/replay", Title: "Replay of a large log", Report: "bench/REPLAY.md", Reps: 1, Window: time.Second,
	About: fmt.Sprintf("Ten million lines of a busy site, 3 GB, up to %d keys, unless the command says otherwise.", logKeys),
	Flags: func(flags *flag.FlagSet) { flags.IntVar(&lines, "lines", 10_000_000, "lines of the log") },
	Setup: setup,
	Rows: func(*measure.Options) (list []measure.Row, err error) {
		for _, j := range jobs {
			list = append(list, measure.Row{Group: group, Line: j.name + ": `" + strings.Join(j.flags, " ") + "`", Measure: j.measure})
		}
		return list, nil
	},
	Columns: []measure.Column{{Figure: wall, Format: "%.1f"}, {Figure: "processor seconds", Format: "%.1f"}, {Figure: mib, Format: "%.0f"}},
	Targets: func(rows []measure.Row) (list []measure.Target) {
		for i, j := range jobs {
			at := []measure.Case{{Row: rows[min(i, len(rows)-1)].Name()}}
			list = append(list, measure.Target{Name: j.name + ", " + wall, Figure: wall, Format: "%.1f", Bound: j.seconds, Cases: at},
				measure.Target{Name: j.name + ", " + mib, Figure: mib, Format: "%.0f", Bound: j.mib, Cases: at})
		}
		return list
	},
}

// setup makes a folder with the program and the log.
func setup(ctx context.Context) (string, func(), error) {
	folder, err := os.MkdirTemp("", "weir-replay-")
	if err != nil {
		return "", nil, err
	}
	end := func() { _ = os.RemoveAll(folder) }
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(folder, "weir"), "./cmd/weir").CombinedOutput(); err != nil {
		end()
		return "", nil, fmt.Errorf("go build: %w\n%s", err, output)
	}
	if err := writeLog(filepath.Join(folder, "access.log"), lines); err != nil {
		end()
		return "", nil, err
	}
	return folder, end, nil
}

// measure runs the job.
func (j job) measure(ctx context.Context, o *measure.Options) (measure.Figures, error) {
	arguments := append(append([]string{"replay", "--key", "ip"}, j.flags...), filepath.Join(o.Place, "access.log"))
	command := exec.CommandContext(ctx, filepath.Join(o.Place, "weir"), arguments...)
	began := time.Now()
	output, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, output)
	}
	took, state := time.Since(began), command.ProcessState
	if !strings.Contains(strings.ReplaceAll(string(output), ",", ""), fmt.Sprint(lines)) {
		return nil, fmt.Errorf("it did not count %d lines:\n%s", lines, output)
	}
	memory := state.SysUsage().(*syscall.Rusage).Maxrss << 10
	return measure.Figures{wall: took.Seconds(), "processor seconds": (state.UserTime() + state.SystemTime()).Seconds(), mib: float64(memory >> 20)}, nil
}
