package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// workload is what processes do at the same time, and the figures of it.
type workload struct {
	name    string
	figures []aim
	measure func(context.Context, *stage) ([]float64, error) // in the order of figures
}

// aim is a figure and its bound; NaN is none.
type aim struct {
	what        string
	unit        string
	least, most float64
}

func atLeast(what, unit string, n float64) aim { return aim{what, unit, n, math.NaN()} }
func atMost(what, unit string, n float64) aim  { return aim{what, unit, math.NaN(), n} }
func told(what, unit string) aim               { return aim{what, unit, math.NaN(), math.NaN()} }

const (
	fortySlots = "concurrency 40 lease 2s" // of which callers that keep them for 200 ms can have 200 a second
	hold       = 200 * time.Millisecond
	perProcess = 40
	processes  = 3
	warm       = 2 * time.Second // before the first figure
	afterDeath = 4 * time.Second
)

func workloads() []workload {
	return []workload{
		{"3 processes of 40 callers for 40 slots, held for 200 ms", []aim{
			atLeast("grants", "/s", 190), atMost("script calls a grant, with heartbeats", "", 2.2), told("smallest share of a caller", "")}, quietly},
		death(1, 150),
		death(5, 110),
		{"the same, and no process has the rights of signals", []aim{
			atLeast("grants", "/s", 100), atLeast("smallest share of a caller", "", 0.1), told("script calls a grant", "")}, unsignalled},
		{"1,800 callers for 50 slots, held for 20 ms", []aim{
			atMost("longest wait, of the callers' number over the grants a second", "", 2), told("grants", "/s"), told("script calls a grant", "")}, crowd},
		{"10,000 callers of hosts at 1/10s each wait for 100 slots that come free", []aim{
			atMost("longest wait of a fresh host's caller", "ms", 50), told("median", "ms"), told("script calls", "")}, freshHosts},
		{"replication", []aim{atMost("bytes a grant, beyond those of slots alone", "", 100), told("of slots alone", "")}, replication},
		{"200 callers of a process, each for another taken slot", []aim{atMost("script calls", "/s", 5)}, idleKeys},
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "one " + one
	}
	return fmt.Sprint(n, " ", many)
}

// slots returns the job of a process whose callers hold slots.
func slots(callers int, limit string, hold time.Duration) job {
	return job{Callers: callers, Limit: limit, Hold: hold}
}

func quietly(ctx context.Context, s *stage) ([]float64, error) {
	r, err := s.play(ctx, play{jobs: slices.Repeat([]job{slots(perProcess, fortySlots, hold)}, processes)})
	if err != nil {
		return nil, err
	}
	return []float64{r.perSecond(), r.callsAGrant(), r.smallestShare()}, nil
}

// death kills a process while it waits and holds.
func death(callers int, least float64) workload {
	name := fmt.Sprintf("the same, beside a process of %s that is killed", plural(callers, "caller", "callers"))
	return workload{name, []aim{atLeast("grants in the worst second after", "/s", least), atMost("longest time without a grant", "ms", 500)},
		func(ctx context.Context, s *stage) ([]float64, error) {
			jobs := append(slices.Repeat([]job{slots(perProcess, fortySlots, hold)}, processes), slots(callers, fortySlots, hold))
			r, err := s.play(ctx, play{jobs: jobs, kill: true})
			if err != nil {
				return nil, err
			}
			return []float64{r.worstSecond(r.killed, r.killed.Add(afterDeath)), r.longestGap(r.killed, r.killed.Add(afterDeath))}, nil
		}}
}

func unsignalled(ctx context.Context, s *stage) ([]float64, error) {
	if err := s.control.Do(ctx, "ACL", "SETUSER", "deaf", "on", ">deaf", "~*", "+@all", "-@pubsub").Err(); err != nil {
		return nil, err
	}
	s.user = "deaf:deaf@"
	r, err := s.play(ctx, play{jobs: slices.Repeat([]job{slots(perProcess, fortySlots, hold)}, processes), measured: 2 * s.measured})
	if err != nil {
		return nil, err
	}
	return []float64{r.perSecond(), r.smallestShare(), r.callsAGrant()}, nil
}

func crowd(ctx context.Context, s *stage) ([]float64, error) {
	const callers = 1800
	r, err := s.play(ctx, play{jobs: slices.Repeat([]job{slots(callers/processes, "concurrency 50 lease 2s", 20*time.Millisecond)}, processes)})
	if err != nil {
		return nil, err
	}
	fair := callers / r.perSecond() * 1000
	return []float64{slices.Max(r.waits()) / fair, r.perSecond(), r.callsAGrant()}, nil
}

// freshHosts has 10,000 callers come whose hosts have just been asked, while all slots are taken. When these come free, callers
// of fresh hosts come, one every 50 ms.
func freshHosts(ctx context.Context, s *stage) ([]float64, error) {
	const hosts, total, rate, crowded = 10_000, "concurrency 100 lease 10s", "token bucket 1/10s burst 1", 4 * time.Second
	holder := job{Callers: 100, Limit: total, Hold: crowded, Pause: time.Hour, Direct: true}
	jobs := []job{holder}
	for range processes {
		jobs = append(jobs, job{Callers: hosts / processes, Limit: total, Host: rate, Dry: true, Hold: time.Millisecond, Late: crowded / 4})
	}
	jobs = append(jobs, job{Callers: 1, Limit: total, Host: rate, Fresh: true, Hold: time.Millisecond, Pause: 50 * time.Millisecond, Late: crowded})
	r, err := s.play(ctx, play{jobs: jobs, warm: crowded, measured: 3 * time.Second})
	if err != nil {
		return nil, err
	}
	fresh := r.tallies[len(jobs)-1]
	r.tallies = []tally{fresh}
	waits := r.waits()
	if len(waits) == 0 {
		return []float64{math.Inf(1), math.Inf(1), r.calls}, nil
	}
	slices.Sort(waits)
	return []float64{waits[len(waits)-1], waits[len(waits)/2], r.calls}, nil
}

func replication(ctx context.Context, s *stage) ([]float64, error) {
	if err := s.replicate(ctx); err != nil {
		return nil, err
	}
	alone := slots(13, fortySlots, hold) // 39 of 40 slots
	alone.Direct = true
	var bytes [2]float64
	for i, j := range []job{alone, slots(perProcess, fortySlots, hold)} {
		r, err := s.play(ctx, play{jobs: slices.Repeat([]job{j}, processes)})
		if err != nil {
			return nil, err
		}
		bytes[i] = r.bytes / float64(len(r.grants()))
	}
	return []float64{bytes[1] - bytes[0], bytes[0]}, nil
}

func idleKeys(ctx context.Context, s *stage) ([]float64, error) {
	const keys, limit = 200, "concurrency 1 lease 5m"
	holder := job{Callers: keys, Keys: keys, Limit: limit, Hold: time.Hour, Direct: true}
	waits := job{Callers: keys, Keys: keys, Limit: limit, Hold: hold, Late: warm / 4}
	r, err := s.play(ctx, play{jobs: []job{holder, waits}})
	if err != nil {
		return nil, err
	}
	return []float64{r.calls / s.measured.Seconds()}, nil
}
