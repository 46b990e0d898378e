package redislimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/pace"
)

// lineCrowd is callers of several processes that acquire, hold and release again and again.
type lineCrowd struct {
	*testing.T
	ctx    context.Context
	leave  func()
	began  time.Time
	all    sync.WaitGroup
	mu     sync.Mutex
	served map[string][]served
}

// served is one grant.
type served struct{ since, at time.Time }

func newLineCrowd(t *testing.T) *lineCrowd {
	c := &lineCrowd{T: t, served: map[string][]served{}, began: time.Now()}
	c.ctx, c.leave = context.WithCancel(t.Context())
	return c
}

// come starts n callers under a name.
func (c *lineCrowd) come(name string, n int, queue *pace.Queue, hold time.Duration, requests ...weir.Request) {
	for range n {
		c.all.Go(func() {
			for c.ctx.Err() == nil {
				since := time.Now()
				a, err := queue.Acquire(c.ctx, requests...)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						c.Errorf("%s: %v", name, err)
					}
					return
				}
				c.mu.Lock()
				c.served[name] = append(c.served[name], served{since, time.Now()})
				c.mu.Unlock()
				time.Sleep(hold)
				_ = a.Done(context.WithoutCancel(c.ctx)) // a lost release is repeated
			}
		})
	}
}

// work lets the callers work for a while, and returns how many of each name were served meanwhile, and for how long nobody
// was at most.
func (c *lineCrowd) work(length time.Duration) (grants map[string]int, idle time.Duration) {
	from := time.Now()
	time.Sleep(length)
	till := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var at []time.Time
	grants = map[string]int{}
	for name, all := range c.served {
		for _, s := range all {
			if s.at.After(from) && s.at.Before(till) {
				grants[name]++
				at = append(at, s.at)
			}
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	last := from
	for _, t := range append(at, till) {
		last, idle = t, max(idle, t.Sub(last))
	}
	c.Logf("%v of %v after %v: %v served, for %v nobody", length, c.Name(), from.Sub(c.began).Round(time.Millisecond), grants, idle.Round(time.Millisecond))
	return grants, idle
}

func (c *lineCrowd) end() {
	c.leave()
	c.all.Wait()
}

// wantGoOn fails unless callers of each name are served that many times more before the leases of these tests end, however busy
// the machine is.
func (c *lineCrowd) wantGoOn(least map[string]int) {
	c.Helper()
	count := func() (grants map[string]int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		grants = map[string]int{}
		for name, all := range c.served {
			grants[name] = len(all)
		}
		return grants
	}
	want := count()
	for name, n := range least {
		want[name] += n
	}
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		problems := missed(count(), want)
		if len(problems) == 0 {
			return
		}
		if time.Since(began) > 20*time.Second {
			c.Fatalf("%q after %v", problems, time.Since(began))
		}
	}
}

// wantServed fails if a name is served too rarely in a stretch of a length, or nobody is for too long. On a busy machine, whose
// timers are late, it looks at up to five further stretches, and permits ten times the lateness.
func (c *lineCrowd) wantServed(length, idle time.Duration, least map[string]int) {
	c.Helper()
	for more := 5; ; more-- {
		lateness := watchTimers()
		grants, longest := c.work(length)
		late, most := lateness(), idle
		busy := late > 20*time.Millisecond
		if busy {
			most += 10 * late
		}
		problems := missed(grants, least)
		if longest > most {
			problems = append(problems, fmt.Sprintf("for %v nobody was served, want %v at most", longest, most))
		}
		if len(problems) == 0 {
			return
		}
		if !busy || more == 0 {
			c.Errorf("%q in %v of a machine that is busy: %v", problems, length, busy)
			return
		}
	}
}

// missed names who is served less than least.
func missed(grants, least map[string]int) (problems []string) {
	for name, n := range least {
		if grants[name] < n {
			problems = append(problems, fmt.Sprintf("%s: %d served, want %d at least", name, grants[name], n))
		}
	}
	return problems
}

// watchTimers watches how late a timer of 5 ms is, until lateness is called, which returns the most.
func watchTimers() (lateness func() time.Duration) {
	stop, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		late := time.Duration(0)
		for {
			began := time.Now()
			select {
			case <-time.After(5 * time.Millisecond):
				late = max(late, time.Since(began)-5*time.Millisecond)
			case <-stop:
				most <- late
				return
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-most
	}
}

// sendingBy returns an engine without signals over a client that sends calls late, so that they overtake one another.
func sendingBy(t *testing.T, server *redistest.Server, late time.Duration) *Engine {
	t.Helper()
	engine, err := NewWith(lateSender{rueidisSender{clientOf(t, server)}, waittest.Between(randtest.New(randtest.Seed(t)), 0, late)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return engine
}

func clientOf(t *testing.T, server *redistest.Server) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

type lateSender struct {
	Sender
	late func() time.Duration
}

func (s lateSender) Send(ctx context.Context, command ...string) (string, error) {
	time.Sleep(s.late())
	return s.Sender.Send(ctx, command...)
}

// changed is an engine whose signals or answers a test changes.
type changed struct {
	*Engine
	mute bool          // signals do not arrive, and the engine does not know
	late time.Duration // answers
}

func (c changed) Listen(slots weir.Request, hear func()) (hears func() bool, stop func()) {
	if c.mute {
		hear = func() {}
	}
	return c.Engine.Listen(slots, hear)
}

func (c changed) Do(ctx context.Context, call weir.Call) (weir.Answer, error) {
	a, err := c.Engine.Do(ctx, call)
	time.Sleep(c.late)
	return a, err
}

func (c changed) queue(t *testing.T) *pace.Queue {
	t.Helper()
	queue, err := pace.NewQueue(c, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

// Callers of three processes, of which some hear no signals or late answers, use slots nearly whole. A process that hears nothing
// beside others that do gets little of them, and may get nothing for seconds if it does not know.
func TestCallersUseSlotsWholeWithoutRelyingOnSignals(t *testing.T) {
	url := func(server *redistest.Server) string { return "redis://" + server.Addr }
	hearing := func(t *testing.T, server *redistest.Server) *pace.Queue {
		return queueOver(t, openFor(t, url(server), Options{}))
	}
	type queueOf = func(t *testing.T, server *redistest.Server) *pace.Queue
	sending := func(t *testing.T, server *redistest.Server) *pace.Queue {
		return queueOver(t, sendingBy(t, server, 5*time.Millisecond))
	}
	minimal := func(t *testing.T, server *redistest.Server) *pace.Queue {
		server.Do(documentedACL(t, "ACL SETUSER weir on")...)
		return queueOver(t, openFor(t, "redis://weir:secret@"+server.Addr, Options{}))
	}
	mute := func(t *testing.T, server *redistest.Server) *pace.Queue {
		return changed{Engine: openFor(t, url(server), Options{}), mute: true}.queue(t)
	}
	overtaken := func(t *testing.T, server *redistest.Server) *pace.Queue {
		return changed{Engine: openFor(t, url(server), Options{}), late: 30 * time.Millisecond}.queue(t)
	}
	for _, c := range []struct {
		name   string
		queues []queueOf
		least  int // grants of each in 8 s, far below what an idle machine does; 0 promises no share, only that somebody goes within idle
		idle   time.Duration
	}{
		{"all hear signals", []queueOf{hearing, hearing, hearing}, 15, 500 * time.Millisecond},
		{"one cannot hear", []queueOf{hearing, hearing, sending}, 1, 500 * time.Millisecond},
		{"none can hear", []queueOf{sending, sending, sending}, 60, 500 * time.Millisecond},
		{"one process that cannot hear", []queueOf{sending}, 150, 500 * time.Millisecond},
		{"one process with the least rights", []queueOf{minimal}, 150, 500 * time.Millisecond},
		{"the least rights", []queueOf{minimal, minimal, minimal}, 15, 500 * time.Millisecond},
		{"one hears nothing and does not know", []queueOf{hearing, hearing, mute}, 0, 600 * time.Millisecond},
		{"none hears anything nor knows", []queueOf{mute, mute, mute}, 0, 700 * time.Millisecond},
		{"signals overtake answers", []queueOf{overtaken, overtaken, overtaken}, 30, 500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			all, least := newLineCrowd(t), map[string]int{}
			slots := mustRule(t, "s=concurrency 4 lease 30s")
			for i, queueOf := range c.queues {
				name := fmt.Sprint("process ", i)
				least[name] = c.least
				all.come(name, 20, queueOf(t, server), 20*time.Millisecond, slots.For("k", 1))
			}
			time.Sleep(time.Second)
			all.wantServed(8*time.Second, c.idle, least)
			all.end()
			eventually(t, "all slots are free", func() error {
				d, err := openFor(t, url(server), Options{}).Peek(t.Context(), slots.For("k", 0))
				if err == nil && d.Remaining != 4 {
					err = fmt.Errorf("%d are", d.Remaining)
				}
				return err
			})
		})
	}
}

// book starts n callers that wait for a rate again and again.
func (c *lineCrowd) book(name string, n int, queue *pace.Queue, request weir.Request) {
	for range n {
		c.all.Go(func() {
			for c.ctx.Err() == nil {
				since := time.Now()
				if _, err := queue.Wait(c.ctx, request); err != nil {
					if !errors.Is(err, context.Canceled) {
						c.Errorf("%s: %v", name, err)
					}
					return
				}
				c.mu.Lock()
				c.served[name] = append(c.served[name], served{since, time.Now()})
				c.mu.Unlock()
			}
		})
	}
}
