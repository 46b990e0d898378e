package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/go-sql-driver/mysql" // its driver is mysql
	_ "modernc.org/sqlite"             // its driver is sqlite

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
	"github.com/weirflow/weir/sqllimit"
)

// job is what the callers of one process do, again and again from Start until End: each waits for a key, and keeps its
// slots for a while.
type job struct {
	URL        string
	Database   string // a driver and its data source, instead of the URL; "" for none
	Addr       string // of the server, if it is not that of the stage
	Start, End time.Time
	From       time.Time     // from when questions are counted
	Late       time.Duration // how much later than Start the callers come
	Callers    int
	Engines    int           // with a queue each, among which the callers are spread; 0 means one
	Limit      string        // of the key
	Cost       int64         // 0 means 1
	Keys       int           // the number of keys; 0 means that all callers have one key
	Work       time.Duration // how long a caller keeps slots
	Pause      time.Duration // from one wait of a caller to the next
	Patience   time.Duration // how long a caller waits on average before it leaves; 0 if it stays
	Direct     bool          // callers do not wait: the engine admits them at once
	Rate       string        // a limit that all callers need, too; "" for none
	Host       string        // the limit of a caller's host, which it needs, too; "" for none
	Dry        bool          // the hosts have been asked before, and do not admit a caller again
	Fresh      bool          // each wait is for another host
}

// tally is what the callers of a process received.
type tally struct {
	Grants   []grant
	Callers  []int           // grants of each
	Asked    int64           // questions to the engine from From to End
	Unserved []time.Duration // how long those had waited that waited at the end
}

type grant struct {
	At     time.Time
	Waited time.Duration
}

// loop is a job that is under way.
type loop struct {
	job
	engine weir.Engine // the first of them
	asked  atomic.Int64
	queues []*pace.Queue
	ends   []func()

	key, rate, own *weir.Rule // rate and own may be nil

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
	defer l.close()
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
	if j.Patience == 0 { // what callers leave behind is measured
		for _, q := range l.queues {
			l.err = errors.Join(l.err, q.Flush(context.WithoutCancel(ctx)))
		}
	}
	l.tally.Asked = l.asked.Load()
	return l.tally, l.err
}

func (j job) begin(ctx context.Context) (l *loop, err error) {
	l = &loop{job: j, tally: tally{Callers: make([]int, j.Callers)}}
	for _, r := range []struct {
		rule        **weir.Rule
		name, limit string
	}{{&l.key, "key", j.Limit}, {&l.rate, "rate", j.Rate}, {&l.own, "host", j.Host}} {
		if r.limit == "" {
			continue
		}
		if *r.rule, err = weir.ParseRule(r.name + "=" + r.limit); err != nil {
			return nil, err
		}
	}
	for range max(j.Engines, 1) {
		if err := l.open(); err != nil {
			return nil, err
		}
	}
	if j.Dry {
		err = l.dry(ctx)
	}
	return l, err
}

// open opens an engine, and a queue for it.
func (l *loop) open() error {
	engine, end, err := l.connect()
	if err != nil {
		return err
	}
	engine = weir.Wrap(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if now := time.Now(); c.Op == weir.OpEach && now.After(l.From) && now.Before(l.End) {
			l.asked.Add(1)
		}
		return next(ctx, c)
	})
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if l.engine == nil {
		l.engine = engine
	}
	l.queues, l.ends = append(l.queues, queue), append(l.ends, end)
	return err
}

// connect opens the engine of the server.
func (l *loop) connect() (weir.Engine, func(), error) {
	if driver, source, found := strings.Cut(l.Database, " "); found {
		db, err := sql.Open(driver, source)
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(2) // for each of 50 processes
		dialect := sqllimit.SQLite
		if driver == "mysql" {
			dialect = sqllimit.MySQL
		}
		engine, err := sqllimit.Open(context.Background(), db, dialect, sqllimit.Options{Create: true})
		return engine, func() { _ = db.Close() }, err
	}
	engine, err := redislimit.Open(l.URL, redislimit.Options{})
	if err != nil {
		return nil, nil, err
	}
	return engine, engine.Close, nil
}

func (l *loop) close() {
	for _, end := range l.ends {
		end()
	}
}

// dry asks all hosts once.
func (l *loop) dry(ctx context.Context) error {
	var hosts sync.WaitGroup
	failed := make(chan error, l.Callers)
	for i := range l.Callers {
		hosts.Go(func() {
			_, err := l.engine.Take(ctx, l.own.For(l.host(i, 0), 1))
			failed <- err
		})
	}
	hosts.Wait()
	close(failed)
	var all error
	for err := range failed {
		all = cmp.Or(all, err)
	}
	return all
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
		began := time.Now()
		done, err := l.wait(ctx, i, l.requests(i, round))
		switch {
		case err != nil && ctx.Err() != nil:
			l.unserved(began)
			return nil
		case errors.Is(err, context.Canceled):
			continue
		case err != nil:
			return err
		}
		l.granted(i, began)
		pause(ctx, l.Work)
		if err := done(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		pause(ctx, l.Pause)
	}
	return nil
}

// requests returns what a caller needs.
func (l *loop) requests(i, round int) []weir.Request {
	all := []weir.Request{l.key.For(fmt.Sprint("k", i%max(l.Keys, 1)), max(l.Cost, 1))}
	if l.rate != nil {
		all = append(all, l.rate.For("all", 1))
	}
	if l.own != nil {
		all = append(all, l.own.For(l.host(i, round), 1))
	}
	return all
}

func (l *loop) unserved(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.Unserved = append(l.tally.Unserved, time.Since(began))
}

func (l *loop) granted(i int, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.Grants = append(l.tally.Grants, grant{time.Now(), time.Since(began)})
	l.tally.Callers[i]++
}

// wait waits for the requests.
func (l *loop) wait(ctx context.Context, i int, requests []weir.Request) (done func(context.Context) error, err error) {
	if l.Patience > 0 {
		own, leave := context.WithCancel(ctx)
		defer leave()
		defer time.AfterFunc(time.Duration(rand.ExpFloat64()*float64(l.Patience)), leave).Stop()
		ctx = own
	}
	queue := l.queues[i%len(l.queues)]
	switch {
	case l.Direct:
		r, err := l.engine.Reserve(ctx, requests...)
		if err == nil && !r.Decision.Allowed {
			err = errors.New("the engine refuses a caller that should not wait")
		}
		return r.Done, err
	case l.Work > 0:
		r, err := queue.Acquire(ctx, requests...)
		if err != nil {
			return nil, err
		}
		return r.Done, nil
	default:
		_, err := queue.Wait(ctx, requests...)
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
