package redislimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// incr is the recipe of most programs: the first use sets the expiry, and a count above the limit refuses.
const incr = `local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return n`

// A server whose clock jumps decides the same requests by INCR with EXPIRE and by a first window. The instants lie whole
// seconds apart, and both ask within less: the expiry of a key has another last instant.
func TestAFirstWindowAdmitsWhatIncrWithExpireAdmits(t *testing.T) {
	server := redistest.StartWithClock(t)
	client := dial(t, server)
	engine := newEngine(t, client, redislimit.Options{})
	random := rand.New(rand.NewPCG(randtest.Seed(t), 412))
	const period, limit = 100, 5
	rule := newRule(t, "first", weir.FirstWindow{Rate: weir.Per(limit, period*time.Second)})
	ahead, admitted, refused, begins := 0, 0, 0, map[string]int{}
	for op := range 600 {
		key := fmt.Sprint(random.IntN(3))
		switch left := begins[key] + period - ahead; random.IntN(6) {
		case 0: // around the end of the window of the key
			if left > 2 {
				ahead += left - 2 + 4*random.IntN(2)
			}
		case 1, 2:
			ahead += 4 * random.IntN(period/10)
		}
		server.SetClock(time.Duration(ahead) * time.Second)
		n, err := client.Do(context.Background(), client.B().Eval().Script(incr).Numkeys(1).Key("incr"+key).Arg(fmt.Sprint(period*1000)).Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		d, err := engine.Take(t.Context(), rule.For(key, 1))
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed != (n <= limit) {
			t.Fatalf("op %d of key %s at %d s: got %+v, and INCR returned %d", op, key, ahead, d, n)
		}
		if n == 1 {
			begins[key] = ahead
		}
		if d.Allowed {
			admitted++
		} else {
			refused++
		}
	}
	if admitted < 50 || refused < 50 {
		t.Errorf("%d were admitted and %d refused: it proves little", admitted, refused)
	}
}
