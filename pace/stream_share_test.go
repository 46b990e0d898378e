package pace_test

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// load is one stream of a class: how much its source delivers at a time, and how
// long its consumer takes over each read.
type load struct {
	class, each int
	work        time.Duration
}

// endless delivers each bytes with every Read.
type endless struct{ each int }

func (e endless) Read(p []byte) (int, error) { return min(e.each, len(p)), nil }

// run reads until the context ends and adds what it read to moved.
func (l load) run(ctx context.Context, p pace.Pacer, moved *atomic.Int64) {
	r := pace.Reader(ctx, pace.InClass(p, l.class), endless{l.each})
	buffer := make([]byte, 64*kib)
	for {
		n, err := r.Read(buffer)
		moved.Add(int64(n))
		if err != nil {
			return
		}
		time.Sleep(l.work)
	}
}

// Classes of weight 3 and 1 share 1 MiB/s while both are busy, for any speed of their readers and any size of reads.
// Either class has all of it while the other is idle.
func TestClassesOfStreamsShareABandwidthByWeight(t *testing.T) {
	const whole = 1 << 20 // one Read fills the buffer
	slow := 30 * time.Millisecond
	for name, loads := range map[string][]load{
		"one fast reader each":         {{0, whole, 0}, {1, whole, 0}},
		"slow and fast readers":        {{0, whole, 0}, {0, whole, slow}, {0, whole, slow}, {1, whole, 0}, {1, whole, slow}, {1, whole, 2 * slow}},
		"many light against one heavy": {{0, whole, 0}, {1, 5000, 0}, {1, 5000, 0}, {1, 5000, 0}, {1, 5000, 0}},
		"short reads against whole":    {{0, 700, 0}, {1, whole, 0}},
		"whole reads against short":    {{0, whole, 0}, {1, 700, 0}},
		"short reads that vary":        {{0, 100, 0}, {0, 3000, 0}, {0, 40_000, slow}, {1, 2000, 0}, {1, 100, 0}},
		"short reads and whole":        {{0, 3000, 0}, {0, whole, slow}, {1, 2000, 0}, {1, 100, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(mib), Burst: 32 * kib}, weir.Options{Weights: []int64{3, 1}})
			var moved [2]atomic.Int64
			var stop [2]context.CancelFunc
			var streams sync.WaitGroup
			for class := range stop {
				var ctx context.Context
				ctx, stop[class] = context.WithCancel(t.Context())
				for _, l := range loads {
					if l.class == class {
						streams.Go(func() { l.run(ctx, lim, &moved[class]) })
					}
				}
			}
			time.Sleep(20*time.Second + time.Nanosecond)
			heavy, light := moved[0].Load(), moved[1].Load()
			if ratio := float64(heavy) / float64(light); ratio < 3*0.98 || ratio > 3*1.02 {
				t.Errorf("%s: %d and %d bytes moved, ratio %.3f, want 3 within 2 %%", name, heavy, light, ratio)
			}
			checkRate(t, name+", both busy", heavy+light, 20)
			stop[0]()
			time.Sleep(20 * time.Second)
			checkRate(t, name+", the heavy one idle", moved[1].Load()-light, 20)
			stop[1]()
			streams.Wait()
		})
	}
}

// checkRate requires 98 % of the bandwidth to be used, and at most the burst above it.
func checkRate(t *testing.T, when string, moved, seconds int64) {
	t.Helper()
	if want := seconds * mib; moved < want*98/100 || moved > want+32*kib {
		t.Errorf("%s: %d bytes in %d s, want %d within 2 %%", when, moved, seconds, want)
	}
}

func TestStreamsOfOneKeyShareItsLimitAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenants := mustKeyed[string](t, weir.TokenBucket{Rate: weir.PerSecond(100 * kib), Burst: 4 * kib})
		ctx, cancel := context.WithCancel(t.Context())
		var moved [2]atomic.Int64
		for i, tenant := range []string{"acme", "acme", "globex"} {
			go load{each: 3000}.run(ctx, tenants.For(tenant), &moved[i/2])
		}
		time.Sleep(10*time.Second + time.Nanosecond)
		cancel()
		synctest.Wait()
		for i := range moved {
			if got, want := moved[i].Load(), int64(1000*kib); got < want*99/100 || got > want+4*kib {
				t.Errorf("tenant %d moved %d bytes in 10 s, want %d within 1 %%", i, got, want)
			}
		}
		n, err := io.ReadFull(pace.Reader(t.Context(), tenants.For("initech"), endless{1000}), make([]byte, 4*kib))
		if n != 4*kib || err != nil {
			t.Errorf("a tenant that was idle read %d, %v; want its burst at once", n, err)
		}
	})
}
