package redislimit_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// queueOn returns a queue over an engine of its own, like that of another process.
func queueOn(t *testing.T, server *redistest.Server) (*pace.Queue, *redislimit.Engine) {
	t.Helper()
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return queue, engine
}

// ticketsIn returns how many units the callers in the only line of the server want.
func ticketsIn(t *testing.T, server *redistest.Server) int {
	t.Helper()
	keys, _ := server.Do("KEYS", "*:qn:*").([]any)
	if len(keys) == 0 {
		return 0
	}
	value, _ := server.Do("GET", keys[0].(string)).(string)
	if value == "" {
		return 0
	}
	want := 0.0
	for entry := value[1:]; len(entry) >= 74; entry = entry[74:] {
		want += math.Float64frombits(binary.LittleEndian.Uint64([]byte(entry[48:])))
	}
	return int(want)
}

// awaitTickets returns when the callers in line want n units.
func awaitTickets(t *testing.T, server *redistest.Server, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the callers in line want %d units", n), func() string {
		if got := ticketsIn(t, server); got != n {
			return fmt.Sprintf("they want %d", got)
		}
		return ""
	})
}

// inTurn starts n callers, the next when Redis knows of the one before, and returns the order in which they
// got the slot. Each holds it for a moment.
func inTurn(t *testing.T, server *redistest.Server, n int, acquire func(i int) (*pace.Acquired, error)) func() []int {
	t.Helper()
	before := ticketsIn(t, server)
	var mu sync.Mutex
	var order []int
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			a, err := acquire(i)
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := a.Done(context.Background()); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "the caller is in line", func() string {
			if got := ticketsIn(t, server); got < before+i+1 {
				return fmt.Sprintf("they want %d units", got)
			}
			return ""
		})
		time.Sleep(25 * time.Millisecond) // callers whose arrivals differ by less than 20 ms are of one age
	}
	return func() []int { callers.Wait(); return order }
}

// decisions returns how many decisions the engines have made.
func decisions(engines ...*redislimit.Engine) (n uint64) {
	for _, e := range engines {
		n += e.Stats().Decisions
	}
	return n
}

// commandCalls returns how often the server has run a command.
func commandCalls(t *testing.T, server *redistest.Server, name string) (n int) {
	t.Helper()
	stats, _ := server.Do("INFO", "commandstats").(string)
	for line := range strings.Lines(stats) {
		if counts, found := strings.CutPrefix(line, "cmdstat_"+name+":calls="); found {
			_, _ = fmt.Sscan(strings.Split(counts, ",")[0], &n)
		}
	}
	return n
}

func TestCallersOfAllEnginesWaitForASlotInOneLine(t *testing.T) {
	server := redistest.Start(t)
	slots := newRule(t, "slots", weir.Concurrency{Slots: 1, Lease: time.Minute})
	var queues []*pace.Queue
	var engines []*redislimit.Engine
	for range 3 {
		queue, engine := queueOn(t, server)
		queues, engines = append(queues, queue), append(engines, engine)
	}
	held, err := queues[0].Acquire(t.Context(), slots.For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	const n = 15
	start, before := time.Now(), decisions(engines...)
	order := inTurn(t, server, n, func(i int) (*pace.Acquired, error) {
		return queues[i*7%3].Acquire(t.Context(), slots.For("vendor", 1))
	})
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := order(); !slices.IsSorted(got) || len(got) != n {
		t.Errorf("callers went in the order %v, want that of their arrival", got)
	}
	releases, heartbeats := n+1, 3*5*int(time.Since(start)/time.Second+2)
	asked := int(decisions(engines...)-before) - releases
	t.Logf("%d decisions and %d releases for %d grants in %v", asked, releases, n, time.Since(start))
	if asked > 3*n+heartbeats {
		t.Errorf("%d decisions for %d grants, want at most 3 a grant besides %d heartbeats", asked, n, heartbeats)
	}
	if signals := commandCalls(t, server, "publish"); signals > 2*releases+6 { // each engine probes its channel
		t.Errorf("%d signals for %d releases, want two each at most", signals, releases)
	}
	awaitTickets(t, server, 0)
}

// A slot that comes back before its lease ends is found, and a deadline before that end refuses no caller in advance.
func TestADeadlineBeforeTheEndOfALeaseRefusesNoCaller(t *testing.T) {
	server := redistest.Start(t)
	queue, _ := queueOn(t, server)
	other, _ := queueOn(t, server)
	slots := newRule(t, "slots", weir.Concurrency{Slots: 1, Lease: time.Hour})
	held, err := queue.Acquire(t.Context(), slots.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := other.Acquire(short, slots.For("k", 1)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) < 300*time.Millisecond {
		t.Errorf("%v after %v, want DeadlineExceeded at the deadline", err, time.Since(start))
	}
	awaitTickets(t, server, 0)
	long, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	order := inTurn(t, server, 1, func(int) (*pace.Acquired, error) { return other.Acquire(long, slots.For("k", 1)) })
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	order()
}

// A caller of both slots keeps those behind it waiting, is not starved by a stream of callers of one, and lets them go
// at once if it leaves. A process that does not answer within its grace is passed: on such a busy machine the
// test repeats itself.
func TestACallerOfAllSlotsIsNotStarved(t *testing.T) {
	const grace, attempts = 200 * time.Millisecond, 5
	for _, leaves := range []bool{false, true} {
		for attempt := 1; ; attempt++ {
			wrong, slowest := waitForBothSlots(t, leaves)
			if wrong == "" {
				break
			}
			if slowest < grace || attempt == attempts {
				t.Fatalf("%s; the slowest answer took %v", wrong, slowest)
			}
		}
	}
}

// waitForBothSlots queues three callers of one slot behind a caller of both, which leaves or stays. It returns the fault, and
// the longest time until the first caller's process answered.
func waitForBothSlots(t *testing.T, leaves bool) (wrong string, slowest time.Duration) {
	server := redistest.Start(t)
	queue, _ := queueOn(t, server)
	other, waits := queueOn(t, server)
	slots := newRule(t, "slots", weir.Concurrency{Slots: 2, Lease: time.Hour})
	one := func() (*pace.Acquired, error) { return queue.Acquire(t.Context(), slots.For("k", 1)) }
	var held [2]*pace.Acquired
	for i := range held {
		var err error
		if held[i], err = one(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	gone := make(chan error, 1)
	order := inTurn(t, server, 4, func(i int) (*pace.Acquired, error) {
		if i > 0 {
			return one()
		}
		a, err := other.Acquire(ctx, slots.For("k", 2))
		if leaves {
			gone <- err
			return one()
		}
		return a, err
	})
	answered := func(i int) { // releases a slot and waits for the answer of the first caller's process
		asked, began := decisions(waits), time.Now()
		if err := held[i].Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the first caller asks", func() string {
			if decisions(waits) == asked {
				return "it did not"
			}
			return ""
		})
		slowest = max(slowest, time.Since(began))
	}
	answered(0) // the first caller needs two
	waiting := queue.Waiting() + other.Waiting()
	if leaves {
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left: %v", err)
		}
		order()
		_ = held[1].Done(t.Context())
	} else {
		answered(1)
		if got := order(); got[0] != 0 {
			wrong = fmt.Sprintf("callers went in the order %v, want the caller of both slots first", got)
		}
	}
	if waiting != 4 {
		wrong = fmt.Sprintf("%d callers wait, want all 4", waiting)
	}
	return wrong, slowest
}

// A rate keeps slots only from the callers that need it too.
func TestACallerThatLacksARateKeepsNoSlotFromOthers(t *testing.T) {
	server := redistest.Start(t)
	queue, _ := queueOn(t, server)
	other, engine := queueOn(t, server)
	slots := newRule(t, "slots", weir.Concurrency{Slots: 1, Lease: time.Hour})
	rate := newRule(t, "rate", weir.FixedWindow{Rate: weir.PerDay(1)})
	if _, err := engine.Take(t.Context(), rate.For("spent", 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := queue.Acquire(ctx, slots.For("k", 1), rate.For("spent", 1))
			refused <- err
		}()
		eventually(t, "the caller waits", func() string {
			if n := queue.Waiting(); n != i+1 {
				return fmt.Sprint(n)
			}
			return ""
		})
	}
	for range 3 {
		a, err := other.Acquire(t.Context(), slots.For("k", 1), rate.For(fmt.Sprint(fresh()), 1))
		if err != nil || a.Done(t.Context()) != nil {
			t.Fatalf("a caller whose rate is free: %v", err)
		}
	}
	if _, err := other.Acquire(t.Context(), slots.For("k", 1)); err != nil {
		t.Errorf("a caller without a rate: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-refused; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller without a rate left: %v", err)
		}
	}
	awaitTickets(t, server, 0)
}
