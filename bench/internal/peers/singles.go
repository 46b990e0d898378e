package peers

import (
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

type xTimeRate struct{ l *rate.Limiter }

func newXTimeRate(l Limit) (Single, error) { return xTimeRate{newRate(l)}, nil }

func (p xTimeRate) Take() (bool, error) { return p.l.Allow(), nil }

// uberLimiter has only the blocking Take. At one unit per nanosecond it never sleeps.
type uberLimiter struct{ l uber.Limiter }

func newUber(options ...uber.Option) func(Limit) (Single, error) {
	return func(Limit) (Single, error) { return &uberLimiter{uber.New(int(time.Second), options...)}, nil }
}

func (p *uberLimiter) Take() (bool, error) {
	p.l.Take()
	return true, nil
}

type jujuBucket struct{ b *ratelimit.Bucket }

func newJuju(l Limit) (Single, error) { return jujuBucket{ratelimit.NewBucket(l.Refill, l.Burst)}, nil }

func (p jujuBucket) Take() (bool, error) { return p.b.TakeAvailable(1) == 1, nil }

type failsafe struct{ l ratelimiter.RateLimiter[any] }

// newFailsafeSmooth has no burst. To admit everything, it grants a permit each nanosecond.
func newFailsafeSmooth(l Limit) (Single, error) {
	interval := l.Refill
	if l.Burst > 1 {
		interval = time.Nanosecond
	}
	return &failsafe{ratelimiter.NewSmoothWithMaxRate[any](interval)}, nil
}

func newFailsafeBursty(l Limit) (Single, error) {
	return &failsafe{ratelimiter.NewBursty[any](uint(l.Burst), l.Window)}, nil
}

func (p *failsafe) Take() (bool, error) { return p.l.TryAcquirePermit(), nil }

type slidingWindow struct {
	l    *slidingwindow.Limiter
	stop slidingwindow.StopFunc
}

func newSlidingWindow(l Limit) (Single, error) {
	made, stop := slidingwindow.NewLimiter(l.Window, l.Burst, func() (slidingwindow.Window, slidingwindow.StopFunc) {
		return slidingwindow.NewLocalWindow()
	})
	return &slidingWindow{made, stop}, nil
}

func (p *slidingWindow) Take() (bool, error) { return p.l.Allow(), nil }

func (p *slidingWindow) Close() { p.stop() }
