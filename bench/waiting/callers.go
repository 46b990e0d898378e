package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// job is what the callers of one process do, again and again from Start until End: each waits for a key, and keeps its
// slots for a while.
type job struct {
	URL        string
	Start, End time.Time
	Late       time.Duration // how much later than Start the callers come
	Callers    int
	Limit      string        // of the key
	Keys       int           // each caller has one of so many keys; 0 means that all have one key
	Hold       time.Duration // how long a caller keeps slots
	Pause      time.Duration // from one wait of a caller to the next
	Direct     bool          // callers do not wait: the engine admits them at once
	Host       string        // the limit of a caller's host, which it needs, too; "" for none
	Dry        bool          // the hosts have been asked before, and do not admit a caller again
	Fresh      bool          // each wait is for another host
}

// tally is what the callers of a process received.
type tally struct {
	Grants  []grant
	Callers []int // grants of each
}

type grant struct {
	At     time.Time
	Waited time.Duration
}

// loop is a job that is under way.
type loop struct {
	job
	engine    *redislimit.Engine
	queue     *pace.Queue
	rule, own *weir.Rule

	mu    sync.Mutex
	tally tally
	err   error
}

// run does the job.
func (j job) run(ctx context.Context) (tally, error) {
	l, err := j.begin(ctx)
	if err != nil {
		return tally{}, err
	}
	defer l.engine.Close()
	time.Sleep(time.Until(j.Start.Add(j.Late)))
	ctx, cancel := context.WithCancel(ctx)
	defer time.AfterFunc(time.Until(j.End), cancel).Stop()
	defer cancel()
	var callers sync.WaitGroup
	for i := range j.Callers {
		callers.Go(func() {
			if err := l.call(ctx, i); err != nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.err = err
				cancel()
			}
		})
	}
	callers.Wait()
	l.queue.Flush(context.WithoutCancel(ctx))
	return l.tally, l.err
}

func (j job) begin(ctx context.Context) (l *loop, err error) {
	l = &loop{job: j, tally: tally{Callers: make([]int, j.Callers)}}
	if l.rule, err = weir.ParseRule("key=" + j.Limit); err != nil {
		return nil, err
	}
	if j.Host != "" {
		if l.own, err = weir.ParseRule("host=" + j.Host); err != nil {
			return nil, err
		}
	}
	if l.engine, err = redislimit.Open(j.URL, redislimit.Options{}); err != nil {
		return nil, err
	}
	if l.queue, err = pace.NewQueue(l.engine, pace.QueueOptions{}); err != nil {
		return nil, err
	}
	if j.Dry {
		err = l.dry(ctx)
	}
	return l, err
}

// dry asks all hosts once.
func (l *loop) dry(ctx context.Context) error {
	requests := make([]weir.Request, l.Callers)
	for i := range requests {
		requests[i] = l.own.For(l.host(i, 0), 1)
	}
	return l.engine.Each(ctx, weir.Calls(weir.OpTake, requests...), make([]weir.Result, len(requests)))
}

// host returns the host of a caller. Processes have different ones.
func (l *loop) host(caller, round int) string {
	if !l.Fresh {
		round = 0
	}
	return fmt.Sprintf("%d.%d.%d", os.Getpid(), caller, round)
}

// call is one caller.
func (l *loop) call(ctx context.Context, i int) error {
	for round := 0; ctx.Err() == nil; round++ {
		requests := []weir.Request{l.rule.For(fmt.Sprint("k", i%max(l.Keys, 1)), 1)}
		if l.own != nil {
			requests = append(requests, l.own.For(l.host(i, round), 1))
		}
		began := time.Now()
		done, err := l.wait(ctx, requests)
		if errors.Is(err, context.Canceled) {
			continue
		}
		if err != nil {
			return err
		}
		l.granted(i, began)
		pause(ctx, l.Hold)
		if err := done(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		pause(ctx, l.Pause)
	}
	return nil
}

func (l *loop) granted(i int, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.Grants = append(l.tally.Grants, grant{time.Now(), time.Since(began)})
	l.tally.Callers[i]++
}

// wait waits for the requests.
func (l *loop) wait(ctx context.Context, requests []weir.Request) (done func(context.Context) error, err error) {
	switch {
	case l.Direct:
		r, err := l.engine.Reserve(ctx, requests...)
		if err == nil && !r.Decision.Allowed {
			err = errors.New("the engine refuses a caller that should not wait")
		}
		return r.Done, err
	case l.Hold > 0:
		r, err := l.queue.Acquire(ctx, requests...)
		if err != nil {
			return nil, err
		}
		return r.Done, nil
	default:
		_, err := l.queue.Wait(ctx, requests...)
		return func(context.Context) error { return nil }, err
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
