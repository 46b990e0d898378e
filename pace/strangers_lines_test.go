package pace_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/linetest"
)

// madman is an engine with lines that panics, fails and answers nonsense at random, until it is cured.
type madman struct {
	*linetest.Engine
	lines enginekit.Lines
	hear  func(enginekit.LineSignal)

	mu     sync.Mutex
	random *rand.Rand
	cured  bool
	acts   int // answers that may each end one wait
	calls  int
}

func (m *madman) EnterLines(hear func(enginekit.LineSignal)) enginekit.Lines {
	m.lines, m.hear = m.Engine.EnterLines(hear), hear
	return m
}

// act returns what to do, 0 to n-1, or n for nothing. Each of the first ones may end a wait.
func (m *madman) act(n, ends int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cured || m.random.IntN(3) > 0 {
		return n
	}
	what := m.random.IntN(n)
	if what < ends {
		m.acts++
	}
	return what
}

func (m *madman) number(of ...int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return of[m.random.IntN(len(of))]
}

func (m *madman) Hears() bool {
	if m.act(2, 0) == 0 {
		panic("hears")
	}
	return m.lines.Hears()
}

func (m *madman) Keeps(requests ...weir.Request) (lane int, kept bool) {
	if m.act(8, 1) == 0 {
		panic("keeps")
	}
	return m.lines.Keeps(requests...)
}

func (m *madman) Ask(ctx context.Context, ask *enginekit.LineAsk) error {
	m.mu.Lock()
	m.calls++
	m.mu.Unlock()
	what := m.act(10, 7)
	if what == 0 {
		panic("before")
	}
	if err := m.lines.Ask(ctx, ask); err != nil {
		return err
	}
	var first *enginekit.LineCaller // that was refused
	for i := range ask.Callers {
		if !ask.Callers[i].Decision.Allowed && first == nil {
			first = &ask.Callers[i]
		}
	}
	switch {
	case what == 1:
		panic("after")
	case what == 2:
		return errBroken
	case what == 3:
		ask.Callers = nil
	case what == 4:
		ask.Keys = append(ask.Keys, ask.Keys...)
	case what == 5 && first != nil:
		first.Stands = []int{int(m.number(-1, 99))}
	case what == 6 && first != nil:
		*first = enginekit.LineCaller{Decision: weir.Decision{RetryAfter: time.Duration(m.number(0, -5))}}
	case what == 7:
		for i := range ask.Callers {
			ask.Callers[i].Requests, ask.Callers[i].Next = nil, time.Duration(m.number(-5, 1))
		}
	case what == 8:
		for i := range ask.Keys {
			ask.Keys[i].LineNews = enginekit.LineNews{Units: m.number(-1, 0, 1<<60), MinAge: time.Duration(m.number(-1, 1<<50)), Look: time.Duration(m.number(-1, 0, 1))}
		}
	case what == 9:
		return lost{}
	}
	return nil
}

func (m *madman) Book(ctx context.Context, book *enginekit.LineBook) error {
	what := m.act(7, 5)
	if what == 0 {
		panic("before")
	}
	if err := m.lines.Book(ctx, book); err != nil {
		return err
	}
	c := &book.Callers[len(book.Callers)-1]
	switch what {
	case 1:
		panic("after")
	case 2:
		book.Callers = nil
	case 3:
		return errBroken
	case 4:
		*c = enginekit.LineCaller{}
	case 5:
		c.Decision.Delay, c.Withdraw = time.Duration(m.number(-1<<50, 0)), nil
	case 6:
		book.Retry = time.Duration(m.number(-1<<50, 0, 1))
	}
	return nil
}

// shout sends signals that mean nothing.
func (m *madman) shout() {
	for m.act(1, 0) == 0 || !m.isCured() {
		m.hear(enginekit.LineSignal{Token: uint64(m.number(0, 1, 2, 3, 99)), Units: m.number(-5, 0, 1, 1<<60), MinAge: time.Duration(m.number(-1, 0, 1<<50))})
		time.Sleep(time.Duration(1 + m.number(0, 1e6, 3e7)))
	}
}

func (m *madman) isCured() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cured
}

// An engine with lines panics, fails, and says what cannot be. Each time that ends one wait at most. Once it is well, every caller
// is served, and nothing is held.
func TestAnEngineWithLinesThatIsMadEndsOneWaitATime(t *testing.T) {
	first, rounds := uint64(time.Now().UnixNano()), uint64(20)
	if text := os.Getenv("WEIR_SEED"); text != "" {
		first, _ = strconv.ParseUint(text, 10, 64)
		rounds = 1
	}
	for seed := first; seed < first+rounds && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { mad(t, seed) })
	}
}

func mad(t *testing.T, seed uint64) {
	server := linetest.NewServer(weir.MemoryOptions{})
	m := &madman{Engine: server.Connect(linetest.Network{Delay: func() time.Duration { return time.Millisecond }}), random: rand.New(rand.NewPCG(seed, 5))}
	q := mustQueue(t, m)
	slots, total := rule(t, "slots", "concurrency 2 lease 1s"), rule(t, "total", "concurrency 3 lease 1s")
	rate, fast := rule(t, "rate", "token bucket 50/s burst 1"), rule(t, "fast", "token bucket 1000/s burst 9")
	shapes := [][]weir.Request{{slots.For("k", 1)}, {total.For("k", 1), slots.For("k", 1)}, {slots.For("k", 2)}, {slots.For("k", 1), rate.For("k", 1)}, {rate.For("k", 1)}, {rate.For("k", 1), fast.For("k", 1)}}
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	failed, after, longest := 0, [6]int{}, time.Duration(0)
	var callers sync.WaitGroup
	for i := range 18 {
		patient := i%4 > 0
		callers.Go(func() {
			for ctx.Err() == nil {
				own, leave := ctx, context.CancelFunc(func() {})
				if !patient {
					own, leave = context.WithTimeout(ctx, time.Duration(m.number(1e6, 1e7, 1e8)))
				}
				came := time.Now()
				a, err := q.Acquire(own, shapes[i%6]...)
				mu.Lock()
				switch {
				case m.isCured() && err == nil:
					after[i%6]++
				case err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
					failed++
				}
				if m.isCured() && patient {
					longest = max(longest, time.Since(came))
				}
				mu.Unlock()
				leave()
				if time.Sleep(5 * time.Millisecond); err == nil {
					_ = a.Done(context.Background())
				}
			}
		})
	}
	go m.shout()
	time.Sleep(5 * time.Second)
	m.mu.Lock()
	m.cured = true
	acts, calls := m.acts, m.calls
	m.mu.Unlock()
	time.Sleep(10 * time.Second)
	stop()
	callers.Wait()
	if err := q.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	time.Sleep(3 * time.Second)
	t.Logf("served after it was cured: %v; %d waits failed in %d acts and %d calls; the longest wait %v", after, failed, acts, calls, longest)
	if failed > acts {
		t.Errorf("seed %d: %d waits failed, and the engine misbehaved %d times", seed, failed, acts)
	}
	if acts < 50 || calls > 50_000 {
		t.Errorf("seed %d: %d acts, %d calls in 5 s", seed, acts, calls)
	}
	for i, n := range after {
		if n < 10 {
			t.Errorf("seed %d: %d callers of %v were served in the 10 s after it was cured", seed, n, texts(shapes[i]))
		}
	}
	if s := q.Stats(); longest > 3*time.Second || s.Waiting != 0 || q.Waiting() != 0 {
		t.Errorf("seed %d: a caller waited for %v; %d or %d callers wait at the end", seed, longest, s.Waiting, q.Waiting())
	}
	for _, full := range []weir.Request{slots.For("k", 2), total.For("k", 3)} {
		if d, err := server.Memory.Peek(context.Background(), full); err != nil || !d.Allowed {
			t.Errorf("seed %d: slots are held at the end: %+v, %v", seed, d, err)
		}
	}
}

// liar is an engine with lines that names free units and then refuses them.
type liar struct {
	*linetest.Engine
	enginekit.Lines
	asks atomic.Int64
}

func (l *liar) EnterLines(hear func(enginekit.LineSignal)) enginekit.Lines {
	l.Lines = l.Engine.EnterLines(hear)
	return l
}

func (l *liar) Ask(ctx context.Context, ask *enginekit.LineAsk) error {
	l.asks.Add(1)
	err := l.Lines.Ask(ctx, ask)
	for i := range ask.Keys {
		ask.Keys[i].Units = 1
	}
	return err
}

// An engine that names units and refuses them again and again is asked like one without signals.
func TestAnEngineThatNamesUnitsInVainIsAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := linetest.NewServer(weir.MemoryOptions{})
		engine := &liar{Engine: server.Connect(linetest.Network{})}
		q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 1 lease 1h")
		held := mustAcquire(t, q, slots.For("k", 1))
		went := goes(t, t.Context(), q, slots.For("k", 1))
		time.Sleep(10 * time.Second)
		if n := engine.asks.Load(); n > 450 {
			t.Errorf("%d asks in 10 s, want at most one in 25 ms", n)
		}
		if err := held.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := <-went; took > 10100*time.Millisecond {
			t.Errorf("the caller goes %v after it came, want within 100 ms of the slot", took)
		}
	})
}
