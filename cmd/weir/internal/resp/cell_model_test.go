package resp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/randtest"
)

// redisCell is the arithmetic of redis-cell for one key, but for one thing that the pages name: a negative quantity makes no key
// better than fresh.
type redisCell struct{ full time.Time } // when the key is fresh again

func (r *redisCell) throttle(maxBurst, count int64, period time.Duration, quantity int64) string {
	now, interval := time.Now(), period/time.Duration(count)
	whole := interval * time.Duration(maxBurst+1)
	if r.full.Before(now) {
		r.full = now
	}
	increment := interval * time.Duration(quantity)
	next := r.full.Add(increment)
	if next.Before(now) {
		next = now
	}
	late, retry, limited := next.Sub(now)-whole, int64(-1), int64(0)
	if late > 0 {
		limited = 1
		if increment <= whole {
			retry = seconds(late)
		}
	} else {
		r.full = next
	}
	left := r.full.Sub(now)
	return fmt.Sprint(limited, maxBurst+1, int64(max(whole-left, 0)/interval), retry, seconds(left))
}

// seconds rounds up from a millisecond on.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		n++
	}
	return n
}

// Quantities include those that give back, look, and never fit.
func TestRandomCallsAreAnsweredAsByRedisCell(t *testing.T) {
	for seed := range randtest.Seeds(t, 40, 40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 29))
			c, cell := start(t, nil).dial(t), redisCell{}
			maxBurst, count, period := random.Int64N(6), 1+random.Int64N(5), 60*(1+random.Int64N(3)) // an interval of whole milliseconds
			for i := range 60 {
				quantity := random.Int64N(maxBurst+6) - 3
				args := strings.Fields(fmt.Sprint("CL.THROTTLE k ", maxBurst, " ", count, " ", period, " ", quantity))
				c.send(encoded(args...))
				want := cell.throttle(maxBurst, count, time.Duration(period)*time.Second, quantity)
				if got := c.answer(); got != want {
					t.Fatalf("seed %d, call %d, %s: got %s, want %s", seed, i, strings.Join(args, " "), got, want)
				}
				time.Sleep(time.Duration(random.Int64N(period*2500/count)) * time.Millisecond)
			}
		})
	}
}
