package redislimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// The key of each state lives until its last booking no longer matters, whatever callers took, booked and gave back.
func TestAKeyLivesUntilWhatWasBookedNoLongerMatters(t *testing.T) {
	client := dial(t, redistest.Start(t))
	seed := randtest.Seed(t)
	var all sync.WaitGroup
	for i, text := range []string{"rate gate 8/2s", "rate gate 300/90s", "sliding log 5/2s", "token bucket 3/1s burst 5", "leaky bucket 4/1s queue 6", "cycle 4/1s"} {
		rule, err := weir.ParseRule("r=" + text)
		if err != nil {
			t.Fatal(err)
		}
		prefix := fmt.Sprint("lives", i)
		engine := newEngine(t, client, redislimit.Options{Prefix: prefix})
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 250 {
				touch(t.Context(), engine, rule, random)
				if err := engine.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				begin := time.Now()
				d, err := engine.Peek(t.Context(), rule.For("k", 0))
				if err != nil {
					t.Error(err)
					return
				}
				lives := time.Duration(0)
				keys, _ := client.Do(t.Context(), client.B().Keys().Pattern(prefix+":*").Build()).AsStrSlice()
				for _, key := range keys {
					ms, _ := client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64()
					lives = max(lives, time.Duration(ms)*time.Millisecond)
				}
				if left := d.ResetAfter - time.Since(begin) - time.Millisecond; lives < left {
					t.Errorf("%s: the key lives for %v, and its state matters for %v", rule, lives, left)
				}
			}
		})
	}
	all.Wait()
}

// touch takes, books or gives back a few units.
func touch(ctx context.Context, engine *redislimit.Engine, rule *weir.Rule, random *rand.Rand) {
	cost := 1 + random.Int64N(3)
	switch pick := random.IntN(8); {
	case pick < 4 && rule.Bookable():
		r, err := weir.ReserveAhead(ctx, engine, time.Duration(random.Int64N(int64(time.Second))), rule.For("k", cost))
		if err == nil && random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.IntN(2)) * 5 * time.Millisecond)
			_ = r.Cancel(ctx)
		}
	case pick == 4:
		_, _ = engine.Return(ctx, rule.For("k", cost))
	case pick == 5: // perhaps left before the answer
		ctx, leave := context.WithTimeout(ctx, time.Duration(random.IntN(1000))*time.Microsecond)
		defer leave()
		_, _ = engine.Take(ctx, rule.For("k", cost))
	default:
		_, _ = engine.Take(ctx, rule.For("k", cost))
	}
}
