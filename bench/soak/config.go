package main

import (
	"fmt"
	"slices"
	"time"
)

// config configures a run.
type config struct {
	duration time.Duration
	seed     uint64
	workers  int
	maxKeys  int
	fault    fault
	progress func(summary) // nil means silent
}

// fault is a deliberate fault, which the run must detect.
type fault string

const (
	noFault      fault = ""
	lostTake     fault = "lost"     // the engine sometimes loses what it admitted
	doubleRecord fault = "doubled"  // the engine sometimes counts twice
	staleLoad    fault = "stale"    // the run loads an older file
	roomAtCap    fault = "uncapped" // a flood finds more room than the bound
	strayRoutine fault = "stray"    // a goroutine does not end
	hoardedKeys  fault = "hoarded"  // the run keeps the keys of a flood
)

var faults = []fault{lostTake, doubleRecord, staleLoad, roomAtCap, strayRoutine, hoardedKeys}

func faultNames() (names []string) {
	for _, f := range faults {
		names = append(names, string(f))
	}
	return names
}

// leastKeys is a bound that leaves each of 64 shards room for the keys of all rules that are not flooded.
const leastKeys = 4096

func (c *config) validate() error {
	switch {
	case c.duration <= 0:
		return fmt.Errorf("a duration of %v is not positive", c.duration)
	case c.workers < 1 || c.workers > 256:
		return fmt.Errorf("%d workers are not 1 to 256", c.workers)
	case c.maxKeys < leastKeys || c.maxKeys > 1<<20:
		return fmt.Errorf("a cap of %d keys is not %d to %d", c.maxKeys, leastKeys, 1<<20)
	case c.fault != noFault && !slices.Contains(faults, c.fault):
		return fmt.Errorf("%q is nothing that can be broken: %v", string(c.fault), faultNames())
	}
	return nil
}
