package redislimit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// The variables that make the test binary a worker: the address of the server, and what to do there.
const workerAddr, workerRole = "WEIR_TEST_WORKER_ADDR", "WEIR_TEST_WORKER_ROLE"

// worker is a process that waits for an engine, beside the test.
type worker struct {
	process *testprocess.Process
	input   io.WriteCloser
	lines   *bufio.Scanner
}

// startWorker starts the test binary in a role. It has said that it is ready.
func startWorker(t *testing.T, server *redistest.Server, role string) *worker {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWorker$", "-test.count=1")
	cmd.Env = append(os.Environ(), workerAddr+"="+server.Addr, workerRole+"="+role)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = end
	process, err := testprocess.Start(cmd)
	_ = end.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.End(); _ = output.Close() })
	w := &worker{process, input, bufio.NewScanner(output)}
	w.lines.Buffer(nil, 1<<24)
	w.read(t, new(string))
	return w
}

// read reads a line of the worker.
func (w *worker) read(t *testing.T, into any) {
	t.Helper()
	if !w.lines.Scan() {
		t.Fatalf("the worker ended: %v", w.lines.Err())
	}
	if err := json.Unmarshal(w.lines.Bytes(), into); err != nil {
		t.Fatalf("a worker said %q: %v", w.lines.Bytes(), err)
	}
}

// say sends a line to the worker.
func (w *worker) say(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(w.input, "\n"); err != nil {
		t.Fatal(err)
	}
}

// TestWorker is the other process of the tests here.
func TestWorker(t *testing.T) {
	role := workerRoles[os.Getenv(workerRole)]
	if role == nil {
		t.Skip("it is a part of other tests")
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{os.Getenv(workerAddr)}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := redislimit.New(client, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said := func(v any) {
		line, _ := json.Marshal(v)
		fmt.Println(string(line))
	}
	input := bufio.NewScanner(os.Stdin)
	said("ready")
	input.Scan()
	role(t, engine, queue, said)
}

var workerRoles = map[string]func(t *testing.T, engine *redislimit.Engine, queue *pace.Queue, say func(any)){
	"callers": waitingCallers,
	"holder":  holder,
}

const rateOfWorkers, burstOfWorkers, callersOfWorker, grantsOfCaller = 1000, 10, 100, 20

func ruleOfWorkers(t testing.TB) *weir.Rule {
	return newRule(t, "rate", weir.TokenBucket{Rate: weir.PerSecond(rateOfWorkers), Burst: burstOfWorkers})
}

// waitingCallers says the instants of all grants, in µs, the number of calls, and the longest delay of a sleep, in µs.
func waitingCallers(t *testing.T, engine *redislimit.Engine, queue *pace.Queue, say func(any)) {
	rule := ruleOfWorkers(t)
	var mu sync.Mutex
	var starts []int64
	var callers sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	stall := make(chan time.Duration)
	go func() { stall <- longestStall(ctx) }()
	for range callersOfWorker {
		callers.Go(func() {
			for range grantsOfCaller {
				if _, err := queue.Wait(context.Background(), rule.For("vendor", 1)); err != nil {
					t.Error(err)
					return
				}
				now := time.Now().UnixMicro()
				mu.Lock()
				starts = append(starts, now)
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	stop()
	say(starts)
	say(engine.Stats().Decisions)
	say((<-stall).Microseconds())
}

// longestStall sleeps repeatedly until ctx ends, and returns the longest delay of a wake-up.
func longestStall(ctx context.Context) (longest time.Duration) {
	const tick = 5 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		time.Sleep(tick)
		longest = max(longest, time.Since(began)-tick)
	}
	return longest
}

// Three processes with 100 waiting callers each use the whole of one rate, except for the delays of the machine, and never
// more.
func TestThreeProcessesUseARateWhole(t *testing.T) {
	server := redistest.Start(t)
	workers := []*worker{startWorker(t, server, "callers"), startWorker(t, server, "callers"), startWorker(t, server, "callers")}
	began := time.Now().UnixMicro()
	for _, w := range workers {
		w.say(t)
	}
	var starts []int64
	decisions, stall := int64(0), int64(0)
	for _, w := range workers {
		var own []int64
		var asked, stalled int64
		w.read(t, &own)
		w.read(t, &asked)
		w.read(t, &stalled)
		starts, decisions, stall = append(starts, own...), decisions+asked, max(stall, stalled)
	}
	slices.Sort(starts)
	n := len(starts)
	if n != 3*callersOfWorker*grantsOfCaller {
		t.Fatalf("%d grants, want %d", n, 3*callersOfWorker*grantsOfCaller)
	}
	for i, at := range starts {
		if most := burstOfWorkers + float64(at-began)*rateOfWorkers/1e6; float64(i+1) > most {
			t.Fatalf("%d grants in %d µs, want at most %.1f", i+1, at-began, most)
		}
	}
	took, least := float64(starts[n-1]-starts[0]), float64(n-burstOfWorkers)/rateOfWorkers*1e6
	t.Logf("%d grants used %.2f %% of the rate, with %.3f decisions a grant; a sleep was late by %d µs", n, 100*least/took, float64(decisions)/float64(n), stall)
	part := 0.99
	if stall > 50_000 {
		part = 0.5 // a busy machine is late all the time
	}
	if most := least/part + 4*float64(stall); took > most {
		t.Errorf("%d grants took %.0f µs, want at most %.0f: %.0f %% of the rate, and four delays of %d µs", n, took, most, 100*part, stall)
	}
	if float64(decisions) > 2.2*float64(n) {
		t.Errorf("%d decisions for %d grants, want at most 2.2 a grant", decisions, n)
	}
}

func slotsOfWorkers(t testing.TB) *weir.Rule {
	return newRule(t, "slots", weir.Concurrency{Slots: 1, Lease: 2 * time.Second})
}

// holder acquires the slot, says so, and holds it until it is killed or its input ends. A handle that the collector finds
// dropped is no longer renewed.
func holder(t *testing.T, _ *redislimit.Engine, queue *pace.Queue, say func(any)) {
	held, err := queue.Acquire(context.Background(), slotsOfWorkers(t).For("vendor", 1))
	if err != nil {
		t.Error(err)
	}
	say("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(held)
}

func killed(t *testing.T, w *worker) {
	t.Helper()
	if err := w.process.Kill(); err != nil {
		t.Fatal(err)
	}
}

func TestSlotsOfAKilledWorkerReturnAfterTheLease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := startWorker(t, server, "holder")
	w.say(t)
	w.read(t, new(string))
	queue, err := pace.NewQueue(newEngine(t, dial(t, server), redislimit.Options{}), pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	killed(t, w)
	start := time.Now()
	a, err := queue.Acquire(t.Context(), slotsOfWorkers(t).For("vendor", 1))
	if err != nil || a.Done(t.Context()) != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("the slot of a killed worker came back after %v, want 2 s of lease and at most a second", took)
	}
}

// A waiter that is killed, at the head of the line or behind it, keeps nothing from those that wait on.
func TestAKilledWaiterDelaysNoOther(t *testing.T) {
	server := redistest.Start(t)
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slots := slotsOfWorkers(t)
	held, err := queue.Acquire(t.Context(), slots.For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	waiter := startWorker(t, server, "holder")
	waiter.say(t)
	asked := engine.Stats().Decisions
	got := make(chan error)
	go func() {
		a, err := queue.Acquire(t.Context(), slots.For("vendor", 1))
		if err == nil {
			err = a.Done(t.Context())
		}
		got <- err
	}()
	for engine.Stats().Decisions < asked+3 { // until the other waiter has asked several times
		time.Sleep(time.Millisecond)
	}
	killed(t, waiter)
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second): // an entry dies after a second
		t.Error("the waiter that lives did not get the slot")
	}
}
