package peers

import (
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	uber "go.uber.org/ratelimit"
)

// single makes a limiter of one subject that cannot fail.
func single(take func() bool) (Limiter, error) {
	return Limiter{Take: func(string) (bool, error) { return take(), nil }}, nil
}

func newXTimeRate(l Limit) (Limiter, error) { return single(newRate(l).Allow) }

// newUber has only the blocking Take. At one unit per nanosecond it never sleeps.
func newUber(options ...uber.Option) func(Limit) (Limiter, error) {
	return func(Limit) (Limiter, error) {
		l := uber.New(int(time.Second), options...)
		return single(func() bool { l.Take(); return true })
	}
}

func newJuju(l Limit) (Limiter, error) {
	b := ratelimit.NewBucket(l.Refill, l.Burst)
	return single(func() bool { return b.TakeAvailable(1) == 1 })
}

// newFailsafeSmooth has no burst. To admit everything, it grants a permit each nanosecond.
func newFailsafeSmooth(l Limit) (Limiter, error) {
	interval := l.Refill
	if l.Burst > 1 {
		interval = time.Nanosecond
	}
	return single(ratelimiter.NewSmoothWithMaxRate[any](interval).TryAcquirePermit)
}

func newFailsafeBursty(l Limit) (Limiter, error) {
	return single(ratelimiter.NewBursty[any](uint(l.Burst), l.Window).TryAcquirePermit)
}

func newSlidingWindow(l Limit) (Limiter, error) {
	made, stop := slidingwindow.NewLimiter(l.Window, l.Burst, func() (slidingwindow.Window, slidingwindow.StopFunc) {
		return slidingwindow.NewLocalWindow()
	})
	return Limiter{Take: func(string) (bool, error) { return made.Allow(), nil }, Close: stop}, nil
}
