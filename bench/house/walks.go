package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// A walk is what a call passes: the difference between a process that makes fewCalls and one that makes manyCalls, divided by the
// calls between them. What a process passes as it starts and stops is in both, and what it passes now and then is less than half a
// call.
const (
	fewCalls  = 100
	manyCalls = 200
)

// walk makes calls in a process that writes its counters to the folder as it ends.
type walk struct {
	name string
	run  func(counters string, calls int) error
}

func (w walk) passed(folder string) (passed, error) {
	var counts [2]map[block]int
	for i, calls := range []int{fewCalls, manyCalls} {
		counters, err := os.MkdirTemp(folder, "counters")
		if err == nil {
			err = w.run(counters, calls)
		}
		if err == nil {
			counts[i], err = countsIn(counters)
		}
		if err != nil {
			return nil, err
		}
	}
	each := map[block]int{}
	for b, n := range counts[1] {
		each[b] = (n - counts[0][b] + (manyCalls-fewCalls)/2) / (manyCalls - fewCalls)
	}
	return callsOf(each)
}

func (b *built) walks() []walk {
	var all []walk
	for i, name := range []string{
		"Limiter.Allow", "Memory.Take, two rules with two keys", "Take on Redis", "Queue.Wait on Redis, admitted at once",
		"Queue.Wait on Redis, admitted later",
	} {
		all = append(all, walk{name, func(counters string, calls int) error {
			return runCounted(exec.Command(b.library, strconv.Itoa(i), strconv.Itoa(calls), b.redis), counters)
		}})
	}
	for _, d := range []struct {
		name  string
		flags []string
	}{
		{"memory", nil},
		{"Redis with a guard", []string{"--engine", b.redis, "--on-failure", "local", "--peers", "2"}},
	} {
		all = append(all,
			walk{"POST /v1/take by attributes, " + d.name, b.asked(post, d.flags)},
			walk{"a call of Envoy's rate limit service, " + d.name, b.asked(ask, d.flags)})
	}
	return all
}

// runCounted runs a program to its end.
func runCounted(c *exec.Cmd, counters string) error {
	c.Env = append(os.Environ(), "GOCOVERDIR="+counters)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, out)
	}
	return nil
}
