// Program deadline measures how often a healthy Redis answers later than a deadline, and how often a Guard would call it
// away, on an idle machine and on busy ones.
//
//	go run ./bench/deadline            two minutes; layer/breaker.go cites it
//	go run ./bench/deadline -for 5s    a trial
//
// 16 callers ask about every 5 ms, while so many processes as a row says take what processor time they get. The breaker is
// simulated on the times of the answers, by the rule of the Guard and by one that counts failures alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/redislimit"
)

var length = flag.Duration("for", 30*time.Second, "measure each load for this `TIME`")

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "deadline:", err)
		os.Exit(1)
	}
}

func run() error {
	addr, end, err := localredis.Start()
	if err != nil {
		return err
	}
	defer end()
	fmt.Println("| busy processes | load | p50 | p99.9 | worst | deadline | late | outages by number alone | over 100 ms | over 250 ms |\n|---|---|---|---|---|---|---|---|---|---|")
	for _, busy := range []int{0, 2, 8, 16} {
		answers, err := measured(addr, busy)
		if err != nil {
			return err
		}
		report(busy, answers)
	}
	return nil
}

// report prints a row for each deadline.
func report(busy int, answers []answer) {
	took := make([]time.Duration, 0, len(answers))
	for _, a := range answers {
		took = append(took, a.took)
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(10 * time.Microsecond)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	for _, deadline := range []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 15 * time.Millisecond, 18 * time.Millisecond} {
		index, _ := slices.BinarySearch(took, deadline+1)
		late := 100 * float64(len(took)-index) / float64(len(took))
		fmt.Printf("| %d | %s | %v | %v | %v | %v | %.2f %% | %d | %d | %d |\n", busy, strings.Fields(string(load) + " ?")[0], at(0.5), at(0.999), at(1), deadline, late,
			outages(answers, deadline, 0), outages(answers, deadline, 100*time.Millisecond), outages(answers, deadline, 250*time.Millisecond))
	}
}

// answer is that of one decision.
type answer struct {
	asked time.Time
	took  time.Duration
}

// measured asks a server for a while beside busy processes.
func measured(addr string, busy int) ([]answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), *length)
	defer cancel()
	for range busy {
		if err := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Start(); err != nil {
			return nil, err
		}
	}
	engine, err := redislimit.Open("redis://"+addr, redislimit.Options{})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	rule, err := weir.ParseRule("r=1000000/s")
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all []answer
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for ctx.Err() == nil {
				asked := time.Now()
				if _, err := engine.Take(context.Background(), rule.For(fmt.Sprint(i), 1)); err != nil {
					fmt.Fprintln(os.Stderr, "deadline:", err)
				}
				mu.Lock()
				all = append(all, answer{asked, time.Since(asked)})
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	callers.Wait()
	return all, nil
}

// outages returns how often a breaker opens whose late answers must be spread over a time. It closes 600 ms later.
func outages(answers []answer, deadline, over time.Duration) (n int) {
	type ended struct {
		at   time.Time
		late bool
	}
	ends := make([]ended, 0, len(answers))
	for _, a := range answers {
		ends = append(ends, ended{a.asked.Add(min(a.took, deadline)), a.took > deadline})
	}
	slices.SortFunc(ends, func(a, b ended) int { return a.at.Compare(b.at) })
	var row, calls, failures int
	var rowFrom, since, failedFrom, open time.Time
	for _, e := range ends {
		if e.at.Before(open) {
			continue
		}
		if e.at.Sub(since) >= time.Second {
			since, calls, failures = e.at, 0, 0
		}
		if calls++; !e.late {
			row = 0
			continue
		}
		if row++; row == 1 {
			rowFrom = e.at
		}
		if failures++; failures == 1 {
			failedFrom = e.at
		}
		if row >= 5 && e.at.Sub(rowFrom) >= over || calls >= 20 && 2*failures >= calls && e.at.Sub(failedFrom) >= over {
			n++
			open, row, calls, failures = e.at.Add(600*time.Millisecond), 0, 0, 0
		}
	}
	return n
}
