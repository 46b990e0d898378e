package pace_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/linetest"
	"github.com/weirflow/weir/pace"
)

// goes starts a caller, and returns when it goes: a channel that receives how long after the call that was.
func goes(t *testing.T, ctx context.Context, q *pace.Queue, requests ...weir.Request) <-chan time.Duration {
	t.Helper()
	went, began := make(chan time.Duration, 1), time.Now()
	go func() {
		if _, err := q.Acquire(ctx, requests...); err == nil {
			went <- time.Since(began)
		}
		close(went)
	}()
	return went
}

// The first process of a line dies. Whenever the slot comes back after that, the next process goes as soon as the dead one
// has been passed over, or at its next heartbeat.
func TestACallerBehindADeadProcessGoesAfterAGrace(t *testing.T) {
	for phase := time.Duration(0); phase < 600*time.Millisecond; phase += 40 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			server := linetest.NewServer(weir.MemoryOptions{})
			dies := server.Connect(linetest.Network{})
			first, next := mustQueue(t, dies), mustQueue(t, server.Connect(linetest.Network{}))
			slots := rule(t, "slots", "concurrency 1 lease 1h")
			held := mustAcquire(t, next, slots.For("k", 1))
			ctx, leave := context.WithCancel(t.Context())
			goes(t, ctx, first, slots.For("k", 1))
			time.Sleep(50 * time.Millisecond)
			went := goes(t, ctx, next, slots.For("k", 1))
			time.Sleep(400*time.Millisecond + phase)
			dies.Kill()
			came := time.Now()
			if err := held.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-went
			if took := time.Since(came); took > 450*time.Millisecond {
				t.Errorf("phase %v: the next caller went %v after the slot came back", phase, took)
			}
			leave()
			time.Sleep(5 * time.Second)
		})
	}
}

// A caller that leaves tells the line, so the next process goes at once when the slot comes back.
func TestACallerThatLeavesALineIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 2)
		slots := rule(t, "slots", "concurrency 1 lease 1h")
		held := mustAcquire(t, queues[1], slots.For("k", 1))
		ctx, leave := context.WithCancel(t.Context())
		goes(t, ctx, queues[0], slots.For("k", 1))
		time.Sleep(50 * time.Millisecond)
		went := goes(t, t.Context(), queues[1], slots.For("k", 1))
		time.Sleep(time.Second)
		leave()
		synctest.Wait()
		came := time.Now()
		if err := held.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-went
		if took := time.Since(came); took > 5*time.Millisecond {
			t.Errorf("the next caller went %v after the slot came back, want at once", took)
		}
	})
}

// A caller behind one of another flow that asks for more goes when the engine admits its own requests.
func TestACheapCallerBehindADearOneGoesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 1)
		rate, all := rule(t, "rate", "token bucket 1/s burst 20"), rule(t, "all", "token bucket 100/s")
		mustAcquire(t, queues[0], rate.For("k", 11))
		begin, wents := time.Now(), make(chan time.Duration, 2)
		for i, cost := range []int64{19, 1} {
			flow := mustFlow(t, queues[0], strconv.Itoa(i), 1)
			go func() {
				if _, err := flow.Wait(t.Context(), rate.For("k", cost), all.For("", 1)); err != nil {
					t.Error(err)
				}
				wents <- time.Since(begin)
			}()
			synctest.Wait()
		}
		if took := <-wents; took != 10*time.Second {
			t.Errorf("the first caller goes after %v, want 10s", took)
		}
		if took := <-wents; took < 11*time.Second || took > 12*time.Second {
			t.Errorf("the caller behind it goes after %v, want about 11s", took)
		}
	})
}

// Of the callers of a process that ask for a rate the oldest keeps the place: a younger one does not let those go first that
// came between them and book.
func TestTheOldestOfAProcessKeepsThePlaceForARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 2)
		rate, all := rule(t, "rate", "token bucket 1/s burst 1"), rule(t, "all", "token bucket 100/s")
		mustAcquire(t, queues[0], rate.For("k", 1))
		went := make(chan string, 3)
		asker := mustFlow(t, queues[0], "a", 1)
		for name, wait := range map[string]func() (weir.Decision, error){
			"1 asks":             func() (weir.Decision, error) { return asker.Wait(t.Context(), rate.For("k", 1)) },
			"2 books":            func() (weir.Decision, error) { return queues[1].Wait(t.Context(), rate.For("k", 1)) },
			"3 asks for another": func() (weir.Decision, error) { return queues[0].Wait(t.Context(), rate.For("k", 1), all.For("", 1)) },
		} {
			go func() {
				time.Sleep(time.Duration(name[0]-'0') * 150 * time.Millisecond)
				if _, err := wait(); err != nil {
					t.Error(err)
				}
				went <- name
			}()
		}
		for _, want := range []string{"1 asks", "2 books", "3 asks for another"} {
			if name := <-went; name != want {
				t.Errorf("%q goes, want %q", name, want)
			}
		}
	})
}

// The answers of the server are lost for a while, after it has admitted a caller. The caller has the slot when they arrive
// again: it is not lost until the end of its lease.
func TestACallerWhoseAnswersAreLostHasTheSlotThatItGot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := linetest.NewServer(weir.MemoryOptions{})
		var lossy atomic.Bool
		calls := 0
		q := mustQueue(t, server.Connect(linetest.Network{Lost: func() bool { calls++; return lossy.Load() && calls%2 == 0 }})) // not the call, but its answer
		slots := rule(t, "slots", "concurrency 1 lease 1h")
		lossy.Store(true)
		went := goes(t, t.Context(), q, slots.For("k", 1))
		time.Sleep(3 * time.Second)
		if d, err := server.Memory.Peek(t.Context(), slots.For("k", 1)); err != nil || d.Allowed {
			t.Fatalf("the slot is free: %+v, %v", d, err)
		}
		lossy.Store(false)
		if took := <-went; took < 3*time.Second || took > 6*time.Second {
			t.Errorf("the caller has its slot after %v, want soon after the 3 s without answers", took)
		}
		if err := q.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if n := q.Waiting(); n != 0 {
			t.Errorf("%d callers wait", n)
		}
	})
}

// Callers whose rates are spent stand for slots before one whose rate is not. When slots come back, it goes after few calls.
func TestARowOfCallersWhoseRatesAreSpentCostsFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const row = 500
		server, queues := queuesOn(t, 2)
		slots, host := rule(t, "slots", "concurrency 1 lease 1h"), rule(t, "host", "token bucket 1/h burst 1")
		held := mustAcquire(t, queues[0], slots.For("k", 1))
		ctx, leave := context.WithCancel(t.Context())
		for i := range row {
			goes(t, ctx, queues[1], slots.For("k", 1), host.For(fmt.Sprint(i), 1))
		}
		synctest.Wait()
		went := goes(t, t.Context(), queues[1], slots.For("k", 1), host.For("fresh", 1))
		synctest.Wait()
		if calls, _ := server.Counts(); calls > 5 {
			t.Errorf("%d calls for %d callers that stand behind others", calls, row+1)
		}
		for i := range row { // others spend the rates, while the slot is taken
			if _, err := server.Memory.Record(t.Context(), host.For(fmt.Sprint(i), 1)); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := server.Counts()
		came := time.Now()
		if err := held.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-went
		calls, _ := server.Counts()
		if took := time.Since(came); took > 50*time.Millisecond || calls-before > 25 {
			t.Errorf("behind %d callers whose rates are spent a caller went after %v and %d calls, want 50ms and 25 at most", row, took, calls-before)
		}
		leave()
		time.Sleep(5 * time.Second)
	})
}

// hasty is lines that always tell units, and a process to look again at once.
type hasty struct {
	enginekit.Lines
	calls *atomic.Int64
	told  enginekit.LineNews
}

func (l hasty) Ask(ctx context.Context, ask *enginekit.LineAsk) error {
	if l.calls.Add(1) > 10_000 { // the bubble would not end
		return errBroken
	}
	err := l.Lines.Ask(ctx, ask)
	for i := range ask.Keys {
		ask.Keys[i].LineNews = l.told
	}
	return err
}

type hastyEngine struct {
	*linetest.Engine
	lines hasty
}

func (e *hastyEngine) EnterLines(hear func(enginekit.LineSignal)) enginekit.Lines {
	e.lines.Lines = e.Engine.EnterLines(hear)
	return e.lines
}

// Without news no caller is asked for more often than every millisecond, whatever the engine says about when to look again.
func TestNoCallerAsksMoreOftenThanEveryMillisecond(t *testing.T) {
	for _, told := range []enginekit.LineNews{{Look: 1}, {Look: time.Microsecond, Passed: true}} {
		synctest.Test(t, func(t *testing.T) {
			server, calls := linetest.NewServer(weir.MemoryOptions{}), new(atomic.Int64)
			q := mustQueue(t, &hastyEngine{server.Connect(linetest.Network{}), hasty{calls: calls, told: told}})
			slots := rule(t, "slots", "concurrency 1 lease 1h")
			held := mustAcquire(t, q, slots.For("k", 1))
			ctx, leave := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for range 5 {
				callers.Go(func() { _, _ = q.Acquire(ctx, slots.For("k", 1)) })
			}
			synctest.Wait()
			before := calls.Load()
			time.Sleep(time.Second)
			if n := calls.Load() - before; n > 1001 {
				t.Errorf("%+v: %d calls in a second without news, want 1,000 at most", told, n)
			}
			leave()
			callers.Wait()
			_ = held.Done(t.Context())
			time.Sleep(5 * time.Second)
		})
	}
}

// What the engine admits for a caller that has left meanwhile comes back, and at once.
func TestWhatIsAdmittedForACallerThatHasLeftComesBack(t *testing.T) {
	const way = 10 * time.Millisecond
	slots, window := rule(t, "slots", "concurrency 1 lease 1h"), rule(t, "window", "fixed window 10/1h")
	for _, lined := range []bool{false, true} {
		for _, requests := range [][]weir.Request{{slots.For("k", 1)}, {slots.For("k", 1), window.For("k", 1)}, {window.For("k", 1)}} {
			if lined && len(requests) == 1 && requests[0].Rule == window {
				continue // it stands in no line
			}
			synctest.Test(t, func(t *testing.T) {
				server := linetest.NewServer(weir.MemoryOptions{})
				distant := remoteOf(server.Memory)
				distant.around = func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
					a, err := next(context.WithoutCancel(ctx), c)
					time.Sleep(way)
					return a, err
				}
				engine := weir.Engine(distant)
				if lined {
					engine = server.Connect(linetest.Network{Delay: func() time.Duration { return way / 2 }})
				}
				q := mustQueue(t, engine)
				ctx, leave := context.WithTimeout(t.Context(), way*4/5)
				defer leave()
				if _, err := q.Acquire(ctx, requests...); err == nil {
					t.Fatal("the caller did not leave")
				}
				if err := q.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				for _, full := range []weir.Request{slots.For("k", 1), window.For("k", 10)} {
					if d, err := server.Memory.Peek(t.Context(), full); err != nil || !d.Allowed {
						t.Errorf("in line %v, %v: %v does not fit after the caller has left: %+v, %v", lined, texts(requests), full.Rule, d, err)
					}
				}
			})
		}
	}
}

// A process whose signals are lost, which it does not know, is served like the others.
func TestAProcessThatHearsNothingAndDoesNotKnowIsServedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := linetest.NewServer(weir.MemoryOptions{})
		slots := rule(t, "slots", "concurrency 2 lease 1h")
		ctx, stop := context.WithCancel(t.Context())
		var grants [2]atomic.Int64
		var longest atomic.Int64 // of the process that hears nothing
		var callers sync.WaitGroup
		for i := range grants {
			q := mustQueue(t, server.Connect(linetest.Network{Mute: func() bool { return i == 1 }}))
			for range 10 {
				callers.Go(func() {
					for came := time.Now(); ctx.Err() == nil; came = time.Now() {
						a, err := q.Acquire(ctx, slots.For("k", 1))
						if i == 1 && time.Since(came) > time.Duration(longest.Load()) {
							longest.Store(int64(time.Since(came)))
						}
						if err == nil {
							grants[i].Add(1)
							time.Sleep(20 * time.Millisecond)
							_ = a.Done(t.Context())
						}
					}
				})
			}
		}
		time.Sleep(20 * time.Second)
		stop()
		callers.Wait()
		hears, mute := grants[0].Load(), grants[1].Load()
		t.Logf("%d grants to the process that hears, %d to the other, whose callers wait for %v at most", hears, mute, time.Duration(longest.Load()))
		if mute < hears/4 || time.Duration(longest.Load()) > 2*time.Second {
			t.Errorf("%d grants to the process that hears, %d to the other, whose callers wait for %v at most: want a quarter at least, and 2s", hears, mute, time.Duration(longest.Load()))
		}
		time.Sleep(5 * time.Second)
	})
}

// Three processes with 40 callers each use 40 slots that each caller keeps for 200 ms, although some or all of them hear no
// signals, and some do not know it. No caller has less than a tenth of its share.
func TestProcessesThatHearNothingUseSlotsToo(t *testing.T) {
	for _, c := range []struct {
		name       string
		deaf, mute int
		least      int64 // grants in 10 s, of 2,000
	}{
		{"all hear", 0, 0, 1960},
		{"one is deaf", 1, 0, 1920},
		{"all are deaf", 3, 0, 1850},
		{"one does not know", 0, 1, 1400},
		{"nobody knows", 0, 3, 1000},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := linetest.NewServer(weir.MemoryOptions{})
			slots := rule(t, "slots", "concurrency 40 lease 1h")
			ctx, stop := context.WithCancel(t.Context())
			var grants [120]atomic.Int64
			var callers sync.WaitGroup
			for i := range 3 {
				q := mustQueue(t, server.Connect(linetest.Network{
					Delay: func() time.Duration { return 300 * time.Microsecond },
					Deaf:  func() bool { return i < c.deaf },
					Mute:  func() bool { return i < c.mute },
				}))
				for j := range 40 {
					callers.Go(func() {
						for ctx.Err() == nil {
							if a, err := q.Acquire(ctx, slots.For("k", 1)); err == nil {
								grants[40*i+j].Add(1)
								time.Sleep(200 * time.Millisecond)
								_ = a.Done(t.Context())
							}
						}
					})
				}
			}
			time.Sleep(2 * time.Second)
			for i := range grants {
				grants[i].Store(0)
			}
			calls, _ := server.Counts()
			time.Sleep(10 * time.Second)
			now, _ := server.Counts()
			sum, fewest := int64(0), grants[0].Load()
			for i := range grants {
				sum, fewest = sum+grants[i].Load(), min(fewest, grants[i].Load())
			}
			stop()
			callers.Wait()
			t.Logf("%s: %d grants, %d to the caller with fewest, %.2f calls a grant", c.name, sum, fewest, float64(now-calls)/float64(sum))
			if sum < c.least || fewest*1200 < sum {
				t.Errorf("%s: %d grants in 10 s, %d to the caller with fewest; want %d and a tenth of its share at least", c.name, sum, fewest, c.least)
			}
			time.Sleep(5 * time.Second)
		})
	}
}
