package redislimit

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// admitting is a Sender that admits one bucket for each key, which no one has used before.
type admitting struct{ trip time.Duration }

func (a admitting) Send(_ context.Context, words ...string) (string, error) {
	keys, err := strconv.Atoi(words[2])
	reply := binary.LittleEndian.AppendUint64(nil, math.Float64bits(1e15))
	for range keys {
		reply = append(reply, wire.FlagAdmitted, 0)
	}
	if a.trip > 0 {
		time.Sleep(a.trip)
	} else {
		runtime.Gosched()
	}
	return string(reply), err
}

// A caller gets the answer to its own question while others leave before their answers come.
func TestAnAnswerIsItsOwnCallersWhileOthersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := NewWith(admitting{time.Millisecond}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var stayed, left atomic.Int64
		var all sync.WaitGroup
		for caller := range 100 {
			all.Go(func() {
				burst := int64(10 + caller)
				rule, err := weir.NewRule(fmt.Sprint("rule", caller), weir.TokenBucket{Rate: weir.PerHour(1), Burst: burst})
				if err != nil {
					t.Error(err)
					return
				}
				random := rand.New(rand.NewPCG(1, uint64(caller)))
				for i := range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(12*time.Millisecond))))
					key, cost := fmt.Sprint(caller, " ", i), int64(1+i%3)
					d, err := e.Take(ctx, rule.For(key, cost))
					cancel()
					if err != nil {
						left.Add(1)
						continue
					}
					stayed.Add(1)
					if !d.Allowed || d.Rule != rule.Name() || d.Key != key || d.Limit != burst || d.Remaining != burst-cost {
						t.Errorf("caller %d of key %q with a burst of %d and a cost of %d: got %+v", caller, key, burst, cost, d)
					}
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second) // in virtual time, for the calls whose callers have left
		if stayed.Load() == 0 || left.Load() == 0 {
			t.Errorf("%d stayed and %d left, want some of each", stayed.Load(), left.Load())
		}
	})
}

// BenchmarkWaitingCallers measures what the engine does for each of many callers that wait at a time, without a server.
func BenchmarkWaitingCallers(b *testing.B) {
	for _, callers := range []int{128, 1024, 4096} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			e, err := NewWith(admitting{}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			rule, err := weir.ParseRule("r=token bucket 1000000/s")
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ReportAllocs()
			for caller := range callers {
				all.Go(func() {
					key := strconv.Itoa(caller)
					for left.Add(-1) >= 0 {
						if _, err := e.Take(ctx, rule.For(key, 1)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}
