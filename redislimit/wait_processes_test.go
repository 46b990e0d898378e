package redislimit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

func init() {
	workerRoles["line"], workerRoles["held"] = standing, holding
	workerRoles["crowd"], workerRoles["whole"] = inCrowd, wholly
}

// went is a caller that got the slot, and when, in µs.
type went struct {
	Caller int
	At     int64
}

// standing starts a caller for each line of the input, its number, and says when it got the slot.
func standing(t *testing.T, _ *redislimit.Engine, queue *pace.Queue, say func(any)) {
	rule := slotsOfWorkers(t)
	say("started")
	var mu sync.Mutex
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		caller := 0
		_, _ = fmt.Sscan(input.Text(), &caller)
		go func() {
			a, err := queue.Acquire(context.Background(), rule.For("vendor", 1))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			say(went{caller, time.Now().UnixMicro()})
			mu.Unlock()
			if err := a.Done(context.Background()); err != nil {
				t.Error(err)
			}
		}()
	}
}

// startStanding starts workers whose callers stand in line.
func startStanding(t *testing.T, server *redistest.Server, n int) (workers []*worker) {
	t.Helper()
	for range n {
		w := startWorker(t, server, "line")
		w.say(t)
		w.read(t, new(string))
		workers = append(workers, w)
	}
	return workers
}

// stand starts a caller of the worker.
func (w *worker) stand(t *testing.T, caller int) {
	t.Helper()
	if _, err := io.WriteString(w.input, fmt.Sprintln(caller)); err != nil {
		t.Fatal(err)
	}
}

// order reads n callers of each worker and returns all in the order in which they went.
func order(t *testing.T, n int, workers ...*worker) (callers []int) {
	t.Helper()
	var all []went
	for _, w := range workers {
		for range n {
			var one went
			w.read(t, &one)
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b went) int { return int(a.At - b.At) })
	for _, one := range all {
		callers = append(callers, one.Caller)
	}
	return callers
}

// A process that holds the slot is killed, and processes whose callers wait. The others go on after the lease: nobody waits for
// callers that died.
func TestKilledProcessesHoldUpOthersForALease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	holder := startWorker(t, server, "holder")
	holder.say(t)
	holder.read(t, new(string))
	workers := startStanding(t, server, 3)
	for i := range 5 {
		workers[0].stand(t, i)
		workers[2].stand(t, i)
	}
	workers[1].stand(t, 5)
	workers[1].stand(t, 6)
	start := time.Now()
	for _, w := range []*worker{holder, workers[0], workers[2]} {
		killed(t, w)
	}
	if got := order(t, 2, workers[1]); len(got) != 2 {
		t.Errorf("callers %v went, want both", got)
	}
	if took := time.Since(start); took > 8*time.Second { // 2 s of lease, and a busy machine
		t.Errorf("the others went after %v", took)
	}
}

const slotsHeld, rateHeld, burstHeld = 2, 100, 10

// interval is the time for which a caller held a slot, in µs.
type interval struct{ From, To int64 }

// held is what callers of a process had: the slots for a while, and units of the rate at instants of the server's clock, in ns.
type held struct {
	Slots []interval
	Taken []int64
	Ended int64 // from then on callers leave, and units come back
}

// holding takes slots and a rate again and again for some seconds, through all faults, and says what it had.
func holding(t *testing.T, engine *redislimit.Engine, _ *pace.Queue, say func(any)) {
	slots := newRule(t, "held", weir.Concurrency{Slots: slotsHeld, Lease: 2 * time.Second})
	rate := newRule(t, "rate", weir.TokenBucket{Rate: weir.PerSecond(rateHeld), Burst: burstHeld})
	var mu sync.Mutex
	had := held{Slots: []interval{}, Ended: time.Now().Add(6 * time.Second).UnixNano()}
	note := func(taken []int64) {
		mu.Lock()
		defer mu.Unlock()
		if len(taken) == 2 { // of the slots and of the rate
			had.Taken = append(had.Taken, taken[1])
		}
	}
	queue, err := pace.NewQueue(weir.Wrap(engine, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		a, err := next(ctx, call)
		note(a.Taken)
		if call.Each != nil {
			for i := range call.Each.Results {
				note(call.Each.Results[i].Taken)
			}
		}
		return a, err
	}), pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, had.Ended))
	defer cancel()
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				a, err := queue.Acquire(ctx, slots.For("vendor", 1), rate.For("vendor", 1))
				if err != nil {
					time.Sleep(10 * time.Millisecond) // the server is away
					continue
				}
				from := time.Now().UnixMicro()
				time.Sleep(2 * time.Millisecond)
				mu.Lock()
				had.Slots = append(had.Slots, interval{from, time.Now().UnixMicro()})
				mu.Unlock()
				_ = a.Done(context.Background())
			}
		})
	}
	callers.Wait()
	mu.Lock()
	defer mu.Unlock()
	say(had)
}

// Redis is killed and restarted, with its memory, and so is a process, while callers of three processes wait for slots
// and a rate. Neither limit is exceeded, and the callers go on.
func TestARestartOfRedisAndADeadProcessExceedNoLimit(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "appendonly yes", "appendfsync always")
	var workers []*worker
	for range 3 {
		workers = append(workers, startWorker(t, server, "held"))
	}
	for _, w := range workers {
		w.say(t)
	}
	time.Sleep(time.Second) // they work
	killed(t, workers[0])
	server.Kill()
	server.Restart()
	restarted := time.Now().UnixMicro()
	var all []interval
	var taken []int64
	ended := int64(math.MaxInt64)
	for _, w := range workers[1:] {
		var own held
		w.read(t, &own)
		all, taken, ended = append(all, own.Slots...), append(taken, own.Taken...), min(ended, own.Ended)
	}
	slices.SortFunc(all, func(a, b interval) int { return int(a.From - b.From) })
	after := 0
	for i, one := range all {
		at := 0
		for _, other := range all[max(i-50, 0) : i+1] {
			if other.From <= one.From && one.From < other.To {
				at++
			}
		}
		if at > slotsHeld {
			t.Fatalf("%d hold a slot at once, want at most %d", at, slotsHeld)
		}
		if one.From > restarted {
			after++
		}
	}
	slices.Sort(taken)
	taken = slices.DeleteFunc(taken, func(at int64) bool { return at >= ended })
	if len(taken) < len(all)*9/10 {
		t.Errorf("%d units were taken for %d holds", len(taken), len(all))
	}
	for i := range taken {
		for j := range i {
			if most := burstHeld + float64(taken[i]-taken[j])*rateHeld/1e9; float64(i-j+1) > most+1e-3 {
				t.Fatalf("%d units in %v, want at most %.0f", i-j+1, time.Duration(taken[i]-taken[j]), most)
			}
		}
	}
	t.Logf("%d holds, %d of them after the restart", len(all), after)
	if after < 20 { // a few hundred on an idle machine
		t.Errorf("%d holds after the restart, want the limits used", after)
	}
}

const slotsOfCrowd = 4

func ruleOfCrowd(t testing.TB) *weir.Rule {
	return newRule(t, "crowd", weir.Concurrency{Slots: slotsOfCrowd, Lease: 2 * time.Second})
}

// inCrowd has ten callers take a slot again and again, and says how many were served each 100 ms.
func inCrowd(t *testing.T, _ *redislimit.Engine, queue *pace.Queue, say func(any)) {
	var served atomic.Int64
	for range 10 {
		go again(queue, &served, ruleOfCrowd(t).For("k", 1))
	}
	for range time.Tick(100 * time.Millisecond) {
		say(served.Load())
	}
}

// wholly has one caller take all slots again and again.
func wholly(t *testing.T, _ *redislimit.Engine, queue *pace.Queue, say func(any)) {
	say("comes")
	again(queue, new(atomic.Int64), ruleOfCrowd(t).For("k", slotsOfCrowd))
}

func again(queue *pace.Queue, served *atomic.Int64, request weir.Request) {
	for {
		a, err := queue.Acquire(context.Background(), request)
		if err != nil {
			return
		}
		served.Add(1)
		time.Sleep(20 * time.Millisecond)
		_ = a.Done(context.Background())
	}
}

// Processes that hold slots, stand in line, or wait for all slots as the first, are killed or stopped. The slots of a dead
// holder are missing until the lease ends, and a place in line for a second at most. A stopped process goes on.
func TestProcessesThatDieOrStopHoldUpOthersBriefly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queue, _ := queueOn(t, server)
	var served atomic.Int64
	for range 10 {
		go again(queue, &served, ruleOfCrowd(t).For("k", 1))
	}
	goesOn := func(after string, within time.Duration) { // within is in sleeps of a millisecond, which are longer on a busy machine
		t.Helper()
		before, began := served.Load(), time.Now()
		for passed := time.Duration(0); served.Load() < before+20; passed += time.Millisecond {
			if time.Sleep(time.Millisecond); passed > within {
				t.Fatalf("%s: %d grants in %v, want 20 in %v", after, served.Load()-before, time.Since(began), within)
			}
		}
		t.Logf("%s: 20 grants in %v", after, time.Since(began))
	}
	goesOn("alone", 5*time.Second)
	stopped := startWorker(t, server, "crowd")
	stopped.say(t)
	for round := range 3 {
		whole := startWorker(t, server, "whole")
		whole.say(t)
		whole.read(t, new(string))
		beside := startWorker(t, server, "crowd")
		beside.say(t)
		time.Sleep(200*time.Millisecond + time.Duration(round)*7*time.Millisecond)
		killed(t, whole)
		goesOn("a caller of all slots was killed", 5*time.Second)
		killed(t, beside)
		goesOn("a process with ten callers was killed", 5*time.Second)
		if err := stopped.process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		goesOn("a process with ten callers was stopped", 5*time.Second)
		if err := stopped.process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		goesOn("it continues", 5*time.Second)
	}
	went := func() (n int64) { stopped.read(t, &n); return n }
	for before, looks := went(), 0; went() < before+20; looks++ {
		if looks == 100 { // 10 s of its own clock
			t.Fatal("the process that was stopped is not served again")
		}
	}
}
