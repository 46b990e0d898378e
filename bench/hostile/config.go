package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// config configures a run.
type config struct {
	duration time.Duration
	seed     uint64
	lanes    int
	late     time.Duration
	engine   string   // of the attacked daemon: memory or redis
	weir     string   // the program to attack; if empty, the run builds one
	only     []string // the attacks to run; empty means all
	fault    fault
	progress func(line string) // nil means silent
}

// The engines of the attacked daemon. A run on both gives Redis a quarter of the time.
const (
	onMemory = "memory"
	onRedis  = "redis"
	onBoth   = "both"
)

// parts returns the runs on one engine each.
func (c *config) parts() []config {
	if c.engine != onBoth {
		return []config{*c}
	}
	memory, redis := *c, *c
	memory.engine, redis.engine = onMemory, onRedis
	redis.duration = max(c.duration/4, 1)
	memory.duration = max(c.duration-redis.duration, 1)
	return []config{memory, redis}
}

// fault is a deliberate fault, which the run must detect.
type fault string

const (
	noFault    fault = ""
	countTwice fault = "twice"  // sometimes sends an honest request a second time
	loseAnswer fault = "lost"   // sometimes does not send an honest request and counts it as answered
	delay      fault = "late"   // sometimes reports an answer as late
	mint       fault = "minted" // sometimes resets an honest client's key
)

var faults = []fault{countTwice, loseAnswer, delay, mint}

func faultNames() (names []string) {
	for _, f := range faults {
		names = append(names, string(f))
	}
	return names
}

func (c *config) validate() error {
	switch {
	case c.duration <= 0:
		return fmt.Errorf("-duration %v is not positive", c.duration)
	case c.lanes < 1 || c.lanes > 64:
		return fmt.Errorf("-lanes %d is not 1 to 64", c.lanes)
	case c.engine != onMemory && c.engine != onRedis && c.engine != onBoth:
		return fmt.Errorf("-engine %q is not memory, redis or both", c.engine)
	case c.late <= 0:
		return fmt.Errorf("-late %v is not positive", c.late)
	case c.fault != noFault && !slices.Contains(faults, c.fault):
		return fmt.Errorf("-break %q: nothing of that name can be broken; choose one of %s", c.fault, strings.Join(faultNames(), ", "))
	}
	for _, name := range c.only {
		if !slices.Contains(attackNames(), name) {
			return fmt.Errorf("-only %q: no attack has that name; choose from %s", name, strings.Join(attackNames(), ", "))
		}
	}
	return nil
}

// command returns the command line that repeats the run.
func (c *config) command() string {
	text := fmt.Sprintf("go run ./bench/hostile -duration %v -seed %d -lanes %d -late %v -engine %s", c.duration, c.seed, c.lanes, c.late, c.engine)
	if len(c.only) > 0 {
		text += " -only " + strings.Join(c.only, ",")
	}
	if c.fault != noFault {
		text += " -break " + string(c.fault)
	}
	return text
}
