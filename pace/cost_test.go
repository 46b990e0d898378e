package pace

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
)

// steps counts the decisions of an engine and the comparisons of lines.
type steps struct{ decisions, comparisons int }

func (s *steps) queue(t *testing.T) *Queue {
	t.Helper()
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { s.decisions++; return time.Now().UnixNano() }})
	q, err := NewQueue(layertest.Around(engine), QueueOptions{Queue: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	q.exact.ready.Watch(func() { s.comparisons++ })
	q.exact.later.Watch(func() { s.comparisons++ })
	return q
}

func mustRule(t testing.TB, text string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lined is callers that wait for the memory engine.
type lined struct {
	name     string
	requests func(i int) []weir.Request
	flow     func(i int) string
}

func linedCallers(t *testing.T) []lined {
	host, total, other := mustRule(t, "host=rate gate 1/1s"), mustRule(t, "total=token bucket 1/1s burst 3"), mustRule(t, "other=token bucket 1/1s burst 3")
	none := func(int) string { return "" }
	hosts := func(i int, more ...weir.Request) []weir.Request {
		return append(more, host.For(strconv.Itoa(i), 1))
	}
	return []lined{
		{"one key", func(int) []weir.Request { return []weir.Request{total.For("all", 1)} }, none},
		{"hosts", func(i int) []weir.Request { return hosts(i / 2) }, none},
		{"hosts and a total", func(i int) []weir.Request { return hosts(i, total.For("all", 1)) }, none},
		{"hosts and two totals", func(i int) []weir.Request {
			if i%2 == 0 {
				return hosts(i, total.For("all", 1))
			}
			return hosts(i, other.For("all", 1))
		}, none},
		{"hosts and a hundred totals", func(i int) []weir.Request { return hosts(i, total.For(strconv.Itoa(i%100), 1)) }, none},
		{"costs of 1 to 3", func(i int) []weir.Request { return []weir.Request{total.For("all", int64(1+i%3))} }, none},
		{"100 flows", func(int) []weir.Request { return []weir.Request{host.For("h", 1), total.For("all", 1)} }, func(i int) string { return strconv.Itoa(i % 100) }},
	}
}

// Whatever the callers of a queue share, a join, a leave and a grant take a few decisions, and comparisons that grow with
// the logarithm of the callers.
func TestTheCostOfAQueueGrowsWithTheLogarithmOfItsCallers(t *testing.T) {
	lengths := []int{10, 100, 1000, 3000}
	for _, tt := range linedCallers(t) {
		for _, n := range lengths {
			t.Run(fmt.Sprintf("%s/%d", tt.name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { costOfALine(t, tt, n) })
			})
		}
	}
}

// costOfALine lets n callers come, half of them leave, and others go for a while.
func costOfALine(t *testing.T, tt lined, n int) {
	var s steps
	q := s.queue(t)
	stay, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	leaves := make([]context.CancelFunc, n)
	for i := range n {
		ctx, leave := context.WithCancel(stay)
		leaves[i] = leave
		callers.Go(func() {
			_, _ = q.take(ctx, &caller{requests: tt.requests(i), flow: tt.flow(i)})
		})
		synctest.Wait()
	}
	for i := 0; i < n; i += 2 {
		leaves[i]()
		synctest.Wait()
	}
	time.Sleep(30 * time.Second)
	synctest.Wait()
	events := n + n/2 + n/2 - q.Waiting() // joins, leaves and grants
	stop()
	callers.Wait()
	for _, leave := range leaves {
		leave()
	}
	t.Logf("%d events: %.1f decisions and %.1f comparisons each", events, float64(s.decisions)/float64(events), float64(s.comparisons)/float64(events))
	if most := 12 * events; s.decisions > most {
		t.Errorf("%d decisions for %d events beside %d callers, want at most %d", s.decisions, events, n, most)
	}
	if most := 4 * events * bits.Len(uint(n)); s.comparisons > most {
		t.Errorf("%d comparisons for %d events beside %d callers, want at most %d", s.comparisons, events, n, most)
	}
}
