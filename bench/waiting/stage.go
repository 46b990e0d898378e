package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/bench/internal/measure"
)

// stage is a server of its own for one measurement of a workload.
type stage struct {
	program  string
	control  *redis.Client
	addr     string        // at which the processes find the server
	user     string        // and as whom
	measured time.Duration // of a play, unless it says otherwise
	ends     []func()
}

func newStage(program string) (*stage, error) {
	addr, end, err := localredis.Start()
	if err != nil {
		return nil, err
	}
	control := redis.NewClient(&redis.Options{Addr: addr})
	return &stage{program: program, control: control, addr: addr, ends: []func(){end, func() { _ = control.Close() }}}, nil
}

func (s *stage) end() {
	for _, end := range s.ends {
		end()
	}
}

// replicate gives the server a replica.
func (s *stage) replicate(ctx context.Context) error {
	host, port, _ := strings.Cut(s.addr, ":")
	_, end, err := localredis.Start("replicaof " + host + " " + port)
	if err != nil {
		return err
	}
	s.ends = append(s.ends, end)
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		if text, err := s.control.Info(ctx, "replication").Result(); err != nil || strings.Contains(text, "state=online") {
			return err
		}
	}
	return fmt.Errorf("the replica of %s does not follow it", s.addr)
}

// info returns a number that the server tells; 0 if it tells none.
func (s *stage) info(ctx context.Context, section, pattern string) (float64, error) {
	text, err := s.control.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		return 0, nil
	}
	return strconv.ParseFloat(found[1], 64)
}

// play is jobs that begin at the same time.
type play struct {
	jobs           []job
	warm, measured time.Duration // the constant warm, and that of the stage, unless given
	kill           bool          // kill the process of the last job
}

// window is the time to which figures belong.
type window struct{ from, to time.Time }

// played is what came of a play.
type played struct {
	window
	tallies      []tally
	calls, bytes float64   // of the script, and that were replicated
	killed       time.Time // when a process was
}

// forStart is how long processes may take until they begin.
const forStart = 1500 * time.Millisecond

// play has a process do each job. It returns what they did.
func (s *stage) play(ctx context.Context, p play) (*played, error) {
	if p.warm == 0 {
		p.warm = warm
	}
	if p.measured == 0 {
		p.measured = s.measured
	}
	start := time.Now().Add(forStart)
	r := &played{tallies: make([]tally, len(p.jobs))}
	r.from = start.Add(p.warm)
	r.to = r.from.Add(p.measured)
	failed := make(chan error, len(p.jobs))
	var last *measure.Child[job, tally]
	for i, j := range p.jobs {
		j.URL, j.Start, j.End = "redis://"+s.user+s.addr, start, r.to
		child, err := measure.StartChild[job, tally](s.program, callersFlag)
		if err != nil {
			return nil, err
		}
		defer child.Stop()
		last = child
		go func() {
			t, err := child.Ask(j)
			if r.tallies[i] = t; p.kill && i == len(p.jobs)-1 {
				err = nil
			}
			failed <- err
		}()
	}
	if p.kill {
		r.killed = r.from.Add(rand.N(hold))
		time.AfterFunc(time.Until(r.killed), last.Kill)
	}
	if err := s.count(ctx, r); err != nil {
		return nil, err
	}
	for range p.jobs {
		if err := <-failed; err != nil {
			return nil, err
		}
	}
	return r, nil
}

// count counts what the server does in the window.
func (s *stage) count(ctx context.Context, r *played) error {
	sign := -1.0
	for _, at := range []time.Time{r.from, r.to} {
		time.Sleep(time.Until(at))
		calls, err := s.info(ctx, "commandstats", `cmdstat_evalsha:calls=(\d+)`)
		if err != nil {
			return err
		}
		bytes, err := s.info(ctx, "replication", `master_repl_offset:(\d+)`)
		if err != nil {
			return err
		}
		r.calls += sign * calls
		r.bytes += sign * bytes
		sign = 1
	}
	return nil
}
