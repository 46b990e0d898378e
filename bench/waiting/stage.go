package main

import (
	"cmp"
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
	database string        // that they share instead: a driver, and its data source; "" for none
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
	most           float64       // grants a second that the limits permit; 0 if that is not told
	killed         []job         // processes that are killed at once, after a while
	dies           *job          // a further process, which is killed each second and begins again
	after          func() error  // runs when the callers leave
}

// window is the time to which figures belong.
type window struct{ from, to time.Time }

// played is what came of a play.
type played struct {
	window
	jobs         []job
	tallies      []tally
	calls, bytes float64   // of the script, and that were replicated
	killed       time.Time // when processes were
}

// forStart is how long processes may take until they begin.
const forStart = 1500 * time.Millisecond

// play has a process do each job. It returns what they did.
func (s *stage) play(ctx context.Context, p play) (*played, error) {
	start := time.Now().Add(forStart + time.Duration(len(p.jobs))*20*time.Millisecond)
	r := &played{jobs: p.jobs, tallies: make([]tally, len(p.jobs))}
	r.from = start.Add(cmp.Or(p.warm, warm))
	r.to = r.from.Add(cmp.Or(p.measured, s.measured))
	failed := make(chan error, len(p.jobs)+1)
	for i, j := range p.jobs {
		child, err := s.child()
		if err != nil {
			return nil, err
		}
		defer child.Stop()
		go func() {
			j = s.job(j, start, r.to)
			j.From = r.from
			t, err := child.Ask(j)
			r.tallies[i] = t
			failed <- err
		}()
	}
	r.killed = r.from.Add(rand.N(work))
	for _, j := range p.killed {
		end, err := s.mortal(s.job(j, start, r.to))
		if err != nil {
			return nil, err
		}
		time.AfterFunc(time.Until(r.killed), end)
	}
	go func() { failed <- s.dying(p.dies, r.window) }()
	if err := s.count(ctx, r); err != nil {
		return nil, err
	}
	if p.after != nil {
		if err := p.after(); err != nil {
			return nil, err
		}
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			return nil, err
		}
	}
	if n, most := float64(len(r.grants())), perProcess+1.02*p.most*r.to.Sub(r.from).Seconds(); p.most > 0 && n > most {
		return nil, fmt.Errorf("%.0f grants, and the limits permit %.0f", n, most)
	}
	return r, nil
}

// job is a job on this stage.
func (s *stage) job(j job, start, end time.Time) job {
	j.URL, j.Database, j.Start, j.End = "redis://"+s.user+cmp.Or(j.Addr, s.addr), s.database, start, end
	return j
}

func (s *stage) child() (*measure.Child[job, tally], error) {
	return measure.StartChild[job, tally](s.program, callersFlag)
}

// mortal starts a process that ends by being killed.
func (s *stage) mortal(j job) (kill func(), err error) {
	child, err := s.child()
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = child.Ask(j) // it never answers
		close(ended)
	}()
	return func() {
		child.Kill()
		<-ended
		child.Stop()
	}, nil
}

// dying kills a process each second of a window, and begins another one.
func (s *stage) dying(j *job, w window) error {
	for at := w.from; j != nil && at.Before(w.to); at = at.Add(time.Second) {
		time.Sleep(time.Until(at))
		kill, err := s.mortal(s.job(*j, at, w.to.Add(time.Second)))
		if err != nil {
			return err
		}
		time.Sleep(time.Until(at.Add(time.Second)))
		kill()
	}
	return nil
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
