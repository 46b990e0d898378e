package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const apart = "units of the process with the most, for one of that with the least"

// shares are workloads of processes that share a limit, in figures of the processes.
func shares() []workload {
	list := []workload{
		booked("100/s burst 1", 100, 1, 1, 1),
		booked("10/s burst 1", 10, 1, 1, 1),
		booked("100/s burst 100", 100, 100, 1, 1),
		bookedBesideDying(),
		{"2,000 callers of one process, each of its own host at 1/s, under a total of 100/s", []aim{
			told("grants", "/s"), atMost("script calls a grant", "", 1.5)}, hostsUnderATotal},
	}
	for _, c := range []struct {
		processes, engines, callers int
		calls                       float64
	}{{4, 1, 10, 3}, {50, 1, 2, 20}, {10, 100, 1, 100}} {
		list = append(list, contended(c.processes, c.engines, c.callers, c.calls))
	}
	return list
}

// booked has three processes, a round trip of 0.3, 1 and 10 ms away, wait for costs of a rate.
func booked(limit string, rate float64, costs ...int64) workload {
	name := fmt.Sprintf("3 processes 0, 1 and 10 ms away, with callers of costs %v, book %s", costs, limit)
	return workload{name, []aim{atLeast("part of the rate that is used", "", 0.95), atMost("script calls a grant", "", 3), atMost(apart, "", 2)},
		func(ctx context.Context, s *stage) ([]float64, error) {
			near, jobs := s.addr, []job{}
			for i, way := range []time.Duration{0, time.Millisecond / 2, 5 * time.Millisecond} {
				s.addr = near
				if way > 0 {
					if err := s.far(way); err != nil {
						return nil, err
					}
				}
				jobs = append(jobs, job{Addr: s.addr, Callers: 10, Limit: "token bucket " + limit, Cost: costs[i]})
			}
			r, err := s.play(ctx, play{jobs: jobs, measured: 5 * s.measured})
			if err != nil {
				return nil, err
			}
			units := r.units(jobs)
			used := 0.0
			for _, n := range units {
				used += n
			}
			return []float64{used / rate / r.to.Sub(r.from).Seconds(), r.callsAGrant(), slices.Max(units) / max(slices.Min(units), 1)}, nil
		}}
}

// bookedBesideDying has a third process die each second while it waits for what all book.
func bookedBesideDying() workload {
	return workload{"2 processes of 40 callers book 200/s, beside one that is killed each second", []aim{
		atLeast("grants of the others", "/s", 120), atMost("script calls a grant", "", 1.1), atMost("longest time without a grant", "ms", 500)},
		func(ctx context.Context, s *stage) ([]float64, error) {
			j := job{Callers: perProcess, Limit: "token bucket 200/s burst 1"}
			r, err := s.play(ctx, play{jobs: []job{j, j}, dies: &j, most: possible})
			if err != nil {
				return nil, err
			}
			return []float64{r.perSecond(), r.callsAGrant(), r.longestGap(r.from, r.to)}, nil
		}}
}

func hostsUnderATotal(ctx context.Context, s *stage) ([]float64, error) {
	r, err := s.play(ctx, play{jobs: []job{{Callers: 2000, Limit: "token bucket 100/s burst 1", Host: "token bucket 1/s burst 1"}}, most: 100})
	if err != nil {
		return nil, err
	}
	return []float64{r.perSecond(), r.callsAGrant()}, nil
}

// contended has processes wait for 8 slots. Each of them may stand for several, by an engine and a queue for each.
func contended(processes, engines, callers int, calls float64) workload {
	name := fmt.Sprintf("%d processes of %s for 8 slots, held for 40 ms", processes*engines, plural(callers, "caller", "callers"))
	return workload{name, []aim{atLeast("grants", "/s", 150), atMost("script calls a grant", "", calls), atMost("longest time without a grant", "ms", 300), told(apart, "")},
		func(ctx context.Context, s *stage) ([]float64, error) {
			j := slots(engines*callers, "concurrency 8 lease 1s", 40*time.Millisecond)
			j.Engines = engines
			jobs := slices.Repeat([]job{j}, processes)
			r, err := s.play(ctx, play{jobs: jobs, measured: 5 * s.measured, most: possible})
			if err != nil {
				return nil, err
			}
			units := r.units(jobs)
			return []float64{r.perSecond(), r.callsAGrant(), r.longestGap(r.from, r.to), slices.Max(units) / max(slices.Min(units), 1)}, nil
		}}
}

// units returns what each process was granted in the window.
func (r *played) units(jobs []job) (all []float64) {
	for i, t := range r.tallies {
		n := 0
		for _, g := range t.Grants {
			if !g.At.Before(r.from) && g.At.Before(r.to) {
				n++
			}
		}
		all = append(all, float64(n)*float64(max(jobs[i].Cost, 1)))
	}
	return all
}
