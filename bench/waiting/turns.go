package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/internal/sqltest"
)

// servers are those on which processes share slots.
var servers = []struct {
	name  string
	begin func(context.Context, *stage) error
}{
	{"Redis", func(context.Context, *stage) error { return nil }},
	{"Redis without signals", func(ctx context.Context, s *stage) error { return s.withoutSignals(ctx) }},
	{"SQLite", func(_ context.Context, s *stage) error { return s.sqlite() }},
	{"MariaDB", func(_ context.Context, s *stage) error { return s.mariaDB() }},
}

// turns are workloads of equal processes whose callers always want slots.
func turns() (list []workload) {
	for _, server := range servers {
		for _, c := range []struct {
			processes, callers, slots int
			work                      time.Duration
		}{{4, 2, 1, 100 * time.Millisecond}, {12, 1, 4, 50 * time.Millisecond}, {50, 10, 8, 40 * time.Millisecond}} {
			name := fmt.Sprintf("%d processes of %s for %s of %v on %s", c.processes, plural(c.callers, "caller", "callers"), plural(c.slots, "slot", "slots"), c.work, server.name)
			list = append(list, workload{name, []aim{told("part of the slots that is used", ""), told("questions a grant", ""), told("grants of the process with the most, for one of that with the least", ""), told("longest time of a process without a grant", "turns")},
				func(ctx context.Context, s *stage) ([]float64, error) {
					if err := server.begin(ctx, s); err != nil {
						return nil, err
					}
					possible := float64(c.slots) / c.work.Seconds()
					j := slots(c.callers, fmt.Sprintf("concurrency %d lease 5s", c.slots), c.work)
					r, err := s.play(ctx, play{jobs: slices.Repeat([]job{j}, c.processes), warm: 5 * time.Second, measured: 5 * s.measured, most: possible})
					if err != nil {
						return nil, err
					}
					units := r.units(r.jobs)
					turn := float64(c.processes) / possible * 1000
					return []float64{r.perSecond() / possible, float64(r.asked()) / float64(len(r.grants())),
						slices.Max(units) / max(slices.Min(units), 1), r.longestGapOfAProcess() / turn}, nil
				}})
		}
	}
	return list
}

// sqlite has the processes share a file.
func (s *stage) sqlite() error {
	return s.host(func(h *localredis.Host) string {
		return "sqlite file:" + filepath.Join(h.TempDir(), "weir") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(10000)&_txlock=immediate"
	})
}

func (s *stage) mariaDB() error {
	return s.host(func(h *localredis.Host) string { return "mysql root@unix(" + sqltest.MariaDB(h).Socket() + ")/test" })
}

// host starts what holds a database, for the time of the stage.
func (s *stage) host(start func(*localredis.Host) string) error {
	h := &localredis.Host{}
	s.ends = append(s.ends, h.Close)
	return localredis.Recovered(func() { s.database = start(h) })
}

// asked returns the questions of the window.
func (r *played) asked() (n int64) {
	for _, t := range r.tallies {
		n += t.Asked
	}
	return n
}

// longestGapOfAProcess returns the longest time of the window in which a process had no grant, in ms.
func (r *played) longestGapOfAProcess() (longest float64) {
	for _, t := range r.tallies {
		one := played{window: r.window, tallies: []tally{t}}
		longest = max(longest, one.longestGap(r.from, r.to))
	}
	return longest
}
