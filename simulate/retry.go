package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
)

// retry is what the clients of a stream do after a refusal. The zero value does not come back.
type retry struct {
	on     bool
	every  time.Duration // 0: obeys Retry-After
	jitter time.Duration // adds a time that is uniform in 0 to jitter
	most   int64         // retries of one request; 0: without a bound
}

// after returns how long the client waits before it comes back. ok is false if it does not.
func (r *retry) after(d weir.Decision, retries uint32, random *rand.Rand) (wait time.Duration, ok bool) {
	if !r.on || r.most > 0 && int64(retries) >= r.most {
		return 0, false
	}
	wait = r.every
	if wait == 0 {
		if d.RetryAfter == weir.Never || d.RetryAfter > weir.MaxPeriod {
			return 0, false
		}
		wait = max(time.Second, (d.RetryAfter+time.Second-1)/time.Second*time.Second)
	}
	if r.jitter > 0 {
		wait += time.Duration(random.Int64N(int64(r.jitter)))
	}
	return wait, true
}
