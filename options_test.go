package weir_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func TestWrongOptionsAreNamed(t *testing.T) {
	limit := weir.TokenBucket{Rate: weir.PerSecond(1)}
	makers := map[string]func(weir.Options) error{
		"NewWith":      func(o weir.Options) error { _, err := weir.NewWith(limit, o); return err },
		"NewKeyedWith": func(o weir.Options) error { _, err := weir.NewKeyedWith[int](limit, o); return err },
		"NewKeyedFunc": func(o weir.Options) error {
			_, err := weir.NewKeyedFunc(func(int) weir.Limit { return limit }, o)
			return err
		},
	}
	for _, test := range []struct {
		options     weir.Options
		field, text string
	}{
		{weir.Options{Queue: -1}, "queue", "weir: new: options: queue -1 is negative"},
		{weir.Options{Weights: []int64{1, 0}}, "weights", "weir: new: options: weights 0 is not within 1 and 1024"},
		{weir.Options{Jitter: -time.Second}, "jitter", "weir: new: options: jitter -1s is negative"},
	} {
		for name, make := range makers {
			err := make(test.options)
			wrong, ok := errors.AsType[*weir.OptionError](err)
			if !ok || wrong.Op != "new" || wrong.Field != test.field || err.Error() != test.text {
				t.Errorf("%s(%+v): got %v, want %s", name, test.options, err, test.text)
			}
			if !errors.Is(err, weir.ErrOption) || errors.Is(err, weir.ErrLimit) {
				t.Errorf("%s(%+v): %v is not only an ErrOption", name, test.options, err)
			}
		}
	}
}

// As an argument zero means zero. In a Turn it means the default: no bound.
func TestZeroIsZeroAsAnArgumentAndTheDefaultInATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}
		lim, keyed := mustNew(t, limit), mustKeyed[int](t, limit)
		lim.Allow()
		keyed.Allow(7)
		start := time.Now()
		refused := func(name string, err error) {
			t.Helper()
			tooLong, ok := errors.AsType[*weir.WaitError](err)
			if !ok || tooLong.Bound != 0 || time.Since(start) != 0 {
				t.Errorf("%s: got %v after %v, want a *WaitError with the bound 0 at once", name, err, time.Since(start))
			}
		}
		refused("Limiter.WaitMax", lim.WaitMax(t.Context(), 1, 0))
		refused("Keyed.WaitMax", keyed.WaitMax(t.Context(), 7, 1, 0))
		refused("Limiter.WaitTurn with a negative Max", lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Max: -1}))
		refused("Keyed.WaitTurn with a negative Max", keyed.WaitTurn(t.Context(), 7, weir.Turn{Cost: 1, Max: -1}))
		for name, reserve := range map[string]func(time.Duration) (weir.Decision, error){
			"Limiter": func(d time.Duration) (weir.Decision, error) { b, err := lim.Reserve(1, d); return b.Decision, err },
			"Keyed":   func(d time.Duration) (weir.Decision, error) { b, err := keyed.Reserve(7, 1, d); return b.Decision, err },
		} {
			if d, err := reserve(0); err != nil || d.Allowed || d.RetryAfter != time.Second {
				t.Errorf("%s.Reserve with a longest of 0: got %+v and %v, want a refusal for 1s", name, d, err)
			}
		}
		for name, err := range map[string]error{
			"Limiter": lim.WaitTurn(t.Context(), weir.Turn{Cost: 1}),
			"Keyed":   keyed.WaitTurn(t.Context(), 7, weir.Turn{Cost: 1}),
		} {
			if err != nil || time.Since(start) != time.Second {
				t.Errorf("%s.WaitTurn with no Max: got %v after %v, want a turn after 1s", name, err, time.Since(start))
			}
		}
	})
}
