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
	fortySlots = "concurrency 40 lease 2s"
	work       = 200 * time.Millisecond
	perProcess = 40
	processes  = 3
	warm       = 2 * time.Second // before the first figure
	possible   = 200             // grants a second
)

func workloads() []workload {
	list := []workload{
		{"3 processes of 40 callers for 40 slots, held for 200 ms", []aim{
			atLeast("grants", "/s", 190), atMost("script calls a grant", "", 2.2), atLeast("smallest share of a caller", "", 0.1)}, quietly},
		dying(1, 150),
		dying(5, 110),
		{"3 processes of 40 callers, beside 3 of 5 callers that are killed at once", []aim{atMost("longest time without a grant", "ms", 1500)}, together},
		{"3 processes of 40 callers without the rights of signals", []aim{
			atLeast("grants", "/s", 100), atLeast("smallest share of a caller", "", 0.1), told("script calls a grant", "")}, unsignalled},
		{"100 processes of 2 callers without the rights of signals", []aim{
			told("grants", "/s"), told("smallest share of a caller", ""), told("script calls a grant", "")}, manyUnsignalled},
		{"12 processes of one caller for 4 slots, held for 50 ms", []aim{
			atMost("script calls a grant", "", 3.1), told("grants", "/s"), told("smallest share of a caller", "")}, alone},
		{"3 processes of 40 callers for 40 slots and a rate of 100/s", []aim{
			atMost("script calls a grant", "", 3.1), told("grants", "/s"), atLeast("smallest share of a caller", "", 0.1)}, withRate},
		{"1,800 callers for 50 slots, held for 20 ms", []aim{
			atMost("longest wait, of the callers' number over the grants a second", "", 2), told("grants", "/s"), told("script calls a grant", "")}, crowd},
		{"10,000 callers of hosts at 1/10s each wait for 100 slots that come free", []aim{
			atMost("longest wait of a fresh host's caller", "ms", 50), told("median", "ms"), told("script calls", "")}, freshHosts},
		{"replication", []aim{atMost("bytes a grant, beyond those of slots alone", "", 100), told("of slots alone", "")}, replication},
		{"200 callers of a process, each for another taken slot", []aim{atMost("script calls", "/s", 5)}, idleKeys},
	}
	for _, n := range []int{1, processes} {
		for _, way := range []time.Duration{0, 10 * time.Millisecond} {
			list = append(list, leaving(n, way))
		}
	}
	return append(append(list, shares()...), turns()...)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "one " + one
	}
	return fmt.Sprint(n, " ", many)
}

// slots returns the job of a process whose callers hold slots.
func slots(callers int, limit string, work time.Duration) job {
	return job{Callers: callers, Limit: limit, Work: work}
}

func quietly(ctx context.Context, s *stage) ([]float64, error) {
	r, err := s.play(ctx, play{jobs: slices.Repeat([]job{slots(perProcess, fortySlots, work)}, processes), most: possible})
	if err != nil {
		return nil, err
	}
	return []float64{r.perSecond(), r.callsAGrant(), r.smallestShare()}, nil
}

// dying has a process die each second, while it waits and holds.
func dying(callers int, least float64) workload {
	name := fmt.Sprintf("2 processes of 40 callers, beside one of %s that is killed each second", plural(callers, "caller", "callers"))
	return workload{name, []aim{atLeast("grants of the others", "/s", least), atMost("longest time without a grant", "ms", 500)},
		func(ctx context.Context, s *stage) ([]float64, error) {
			dies := slots(callers, fortySlots, work)
			r, err := s.play(ctx, play{jobs: slices.Repeat([]job{slots(perProcess, fortySlots, work)}, processes-1), dies: &dies, most: possible})
			if err != nil {
				return nil, err
			}
			return []float64{r.perSecond(), r.longestGap(r.from, r.to)}, nil
		}}
}

func together(ctx context.Context, s *stage) ([]float64, error) {
	r, err := s.play(ctx, play{jobs: slices.Repeat([]job{slots(perProcess, fortySlots, work)}, processes), killed: slices.Repeat([]job{slots(5, fortySlots, work)}, processes), most: possible})
	if err != nil {
		return nil, err
	}
	return []float64{r.longestGap(r.killed, r.to)}, nil
}

func unsignalled(ctx context.Context, s *stage) ([]float64, error) {
	return s.deaf(ctx, slices.Repeat([]job{slots(perProcess, fortySlots, work)}, processes))
}

func manyUnsignalled(ctx context.Context, s *stage) ([]float64, error) {
	return s.deaf(ctx, slices.Repeat([]job{slots(2, fortySlots, work)}, 100))
}

// withoutSignals has the processes be a user without the rights of signals.
func (s *stage) withoutSignals(ctx context.Context) error {
	s.user = "deaf:deaf@"
	return s.control.Do(ctx, "ACL", "SETUSER", "deaf", "on", ">deaf", "~*", "+@all", "-@pubsub").Err()
}

// deaf plays jobs of a user without the rights of signals.
func (s *stage) deaf(ctx context.Context, jobs []job) ([]float64, error) {
	if err := s.withoutSignals(ctx); err != nil {
		return nil, err
	}
	r, err := s.play(ctx, play{jobs: jobs, measured: 2 * s.measured, most: possible})
	if err != nil {
		return nil, err
	}
	return []float64{r.perSecond(), r.smallestShare(), r.callsAGrant()}, nil
}

func alone(ctx context.Context, s *stage) ([]float64, error) {
	r, err := s.play(ctx, play{jobs: slices.Repeat([]job{slots(1, "concurrency 4 lease 2s", 50*time.Millisecond)}, 12), most: 80})
	if err != nil {
		return nil, err
	}
	return []float64{r.callsAGrant(), r.perSecond(), r.smallestShare()}, nil
}

func withRate(ctx context.Context, s *stage) ([]float64, error) {
	j := slots(perProcess, fortySlots, work)
	j.Rate = "token bucket 100/s burst 1"
	r, err := s.play(ctx, play{jobs: slices.Repeat([]job{j}, processes), most: 100})
	if err != nil {
		return nil, err
	}
	return []float64{r.callsAGrant(), r.perSecond(), r.smallestShare()}, nil
}

// leaving has 150 callers of a rate come and leave again.
func leaving(n int, way time.Duration) workload {
	const callers, limit, rate = 150, "token bucket 100/s burst 1", 100
	name := fmt.Sprintf("%d callers of %s that stay for 200 ms on average, for a rate of 100/s", callers, plural(n, "process", "processes"))
	if way > 0 {
		name += fmt.Sprintf(", %v away", way)
	}
	return workload{name, []aim{atLeast("part of the rate that is used", "", 0.95), atMost("script calls a grant", "", 1.6), atMost("until the key is free again", "ms", 300)},
		func(ctx context.Context, s *stage) ([]float64, error) {
			near := s.addr
			if way > 0 {
				if err := s.far(way); err != nil {
					return nil, err
				}
			}
			free := 0.0
			jobs := slices.Repeat([]job{{Callers: callers / n, Limit: limit, Patience: 200 * time.Millisecond}}, n)
			r, err := s.play(ctx, play{jobs: jobs, most: rate, after: func() (err error) { free, err = freeAfter(ctx, near, limit); return err }})
			if err != nil {
				return nil, err
			}
			return []float64{r.perSecond() / rate, r.callsAGrant(), free}, nil
		}}
}

// freeAfter returns after how long the limit of the callers admits one that does not wait, in ms.
func freeAfter(ctx context.Context, addr, limit string) (float64, error) {
	l, err := job{URL: "redis://" + addr, Limit: limit}.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer l.close()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		d, err := l.engine.Take(ctx, l.requests(0, 0)...)
		if took := time.Since(began); err != nil || d.Allowed || took > 10*time.Second {
			return milliseconds(took), err
		}
	}
}

func crowd(ctx context.Context, s *stage) ([]float64, error) {
	const callers = 1800
	r, err := s.play(ctx, play{jobs: slices.Repeat([]job{slots(callers/processes, "concurrency 50 lease 2s", 20*time.Millisecond)}, processes)})
	if err != nil {
		return nil, err
	}
	fair := callers / r.perSecond() * 1000
	return []float64{slices.Max(append(r.waits(), r.unserved()...)) / fair, r.perSecond(), r.callsAGrant()}, nil
}

// freshHosts has 10,000 callers come whose hosts have just been asked, while all slots are taken. When these come free, callers
// of fresh hosts come, one every 50 ms.
func freshHosts(ctx context.Context, s *stage) ([]float64, error) {
	const hosts, total, rate, crowded = 10_000, "concurrency 100 lease 10s", "token bucket 1/10s burst 1", 4 * time.Second
	holder := job{Callers: 100, Limit: total, Work: crowded, Pause: time.Hour, Direct: true}
	jobs := []job{holder}
	for range processes {
		jobs = append(jobs, job{Callers: hosts / processes, Limit: total, Host: rate, Dry: true, Work: time.Millisecond, Late: crowded / 4})
	}
	jobs = append(jobs, job{Callers: 1, Limit: total, Host: rate, Fresh: true, Work: time.Millisecond, Pause: 50 * time.Millisecond, Late: crowded})
	r, err := s.play(ctx, play{jobs: jobs, warm: crowded, measured: 3 * time.Second})
	if err != nil {
		return nil, err
	}
	fresh := r.tallies[len(jobs)-1]
	if n := len(r.unserved()) - len(fresh.Unserved); n != hosts/processes*processes {
		return nil, fmt.Errorf("%d callers of hosts wait at the end", n)
	}
	r.tallies = []tally{fresh}
	waits := append(r.waits(), r.unserved()...)
	slices.Sort(waits)
	return []float64{waits[len(waits)-1], waits[len(waits)/2], r.calls}, nil
}

func replication(ctx context.Context, s *stage) ([]float64, error) {
	if err := s.replicate(ctx); err != nil {
		return nil, err
	}
	alone := slots(13, fortySlots, work) // 39 of 40 slots
	alone.Direct = true
	var bytes [2]float64
	for i, j := range []job{alone, slots(perProcess, fortySlots, work)} {
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
	holder := job{Callers: keys, Keys: keys, Limit: limit, Work: time.Hour, Direct: true}
	waits := job{Callers: keys, Keys: keys, Limit: limit, Work: work, Late: warm / 4}
	r, err := s.play(ctx, play{jobs: []job{holder, waits}})
	if err != nil {
		return nil, err
	}
	if n := len(r.unserved()); n != keys {
		return nil, fmt.Errorf("%d callers wait at the end", n)
	}
	return []float64{r.calls / s.measured.Seconds()}, nil
}
