package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
)

const questions = "questions asked of Redis, by the number of callers that wait in one process"

// asked is a line of the table of questions. docs/develop/queues.md promises its bounds, and a row above its bound is an error.
type asked struct {
	line   string
	grants bool // are granted; otherwise the callers are at rest
	most   func(callers int) float64
	play   func(callers int) play
}

// askedFor are the lines: of callers that are granted what they wait for, and of callers at rest, whose keys free nothing. The
// callers of a rate at rest have used it up themselves; slots are held by another process.
var askedFor = []asked{
	{"a grant of 100/s", true, always(1.1), func(n int) play {
		return play{jobs: []job{{Callers: n, Limit: "token bucket 100/s burst 1"}}, most: 100}
	}},
	{"a grant of 40 slots, held for 200 ms", true, always(1.1), func(n int) play {
		return play{jobs: []job{slots(n, fortySlots, work)}, most: possible}
	}},
	{"a second at rest, one key of 1/d", false, always(1.1), func(n int) play {
		return play{jobs: []job{{Callers: n, Limit: used}}}
	}},
	{"a second at rest, a key of 1/d each", false, ofKeys, func(n int) play {
		return play{jobs: []job{{Callers: n, Keys: n, Limit: used}}}
	}},
	{"a second at rest, a slot each", false, ofSlots, func(n int) play {
		const limit = "concurrency 1 lease 5m"
		return play{jobs: []job{{Callers: n, Keys: n, Limit: limit, Work: time.Hour, Direct: true}, {Callers: n, Keys: n, Limit: limit, Work: work, Late: crowdWarm / 2}}}
	}},
}

const (
	used      = "token bucket 1/d burst 1"
	crowdWarm = 10 * time.Second // in which ten thousand callers come
)

func always(most float64) func(int) float64 { return func(int) float64 { return most } }

// ofKeys bounds the calls for keys at rest: a second apart for one, at multiples of 50 ms for some, a hundred for ten thousand.
func ofKeys(keys int) float64 {
	switch {
	case keys == 1:
		return 1.1
	case keys <= 100:
		return 21
	default:
		return 100
	}
}

// ofSlots bounds the same for slots. Their holder renews them every 10 s, and the time between questions doubles anew.
func ofSlots(keys int) float64 { return 1.3 * ofKeys(keys) }

func questionRows() (list []measure.Row) {
	for _, q := range askedFor {
		for _, n := range []int{1, 100, 10_000} {
			w := workload{q.line, []aim{told(q.figure(), "")}, func(ctx context.Context, s *stage) ([]float64, error) { return q.measure(ctx, s, n) }}
			list = append(list, measure.Row{Group: questions, Line: q.line, Column: plural(n, "caller", "callers"), Ours: true, Measure: w.row})
		}
	}
	return list
}

func (q asked) measure(ctx context.Context, s *stage, callers int) ([]float64, error) {
	p := q.play(callers)
	p.warm = crowdWarm
	r, err := s.play(ctx, p)
	if err != nil {
		return nil, err
	}
	grants := float64(len(r.grants()))
	of, edge, ok := s.measured.Seconds(), 1.0, grants == 0 && len(r.unserved()) == callers
	if q.grants {
		of, edge, ok = max(grants, 1), 0, grants >= least(p)*s.measured.Seconds()
	}
	n, most := float64(r.asked())/of, q.most(callers)+edge/of // one question at either end of the window
	switch {
	case !ok:
		return nil, fmt.Errorf("%.0f grants, and %d callers wait at the end: the workload differs from its definition", grants, len(r.unserved()))
	case n > most:
		return nil, fmt.Errorf("%.2f %s; docs/develop/queues.md promises %.2f at most", n, q.figure(), most)
	}
	return []float64{n}, nil
}

func (q asked) figure() string {
	if q.grants {
		return "questions a grant"
	}
	return "questions a second"
}

// least is half of the grants a second that the callers can have.
func least(p play) float64 {
	j := p.jobs[0]
	if j.Work == 0 {
		return p.most / 2
	}
	return min(p.most, float64(j.Callers)/j.Work.Seconds()) / 2
}
