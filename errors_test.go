package weir_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestErrorsTellDurationsAsAPersonWritesThem(t *testing.T) {
	for need, want := range map[time.Duration]string{
		1500 * time.Microsecond:      "1.5ms",
		90 * time.Minute:             "1h30m",
		23 * time.Hour:               "23h",
		24 * time.Hour:               "1 day",
		25*time.Hour + time.Second:   "1 day 1h1m",
		999924588 * time.Microsecond: "16m40s",
		59999999999:                  "1m",
		weir.MaxPeriod:               "366 days",
	} {
		err := &weir.WaitError{Need: need, Bound: 2 * time.Hour}
		if want = "weir: wait: it would take " + want + ", above the bound of 2h"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestErrorOfABookingAheadSaysWhyAndWhatToDo(t *testing.T) {
	const want = "weir: reserve: limit cannot be reserved ahead: a window, a log or slots cannot promise when units come free; use a longest of 0, or Wait"
	for _, text := range []string{"fixed window 5/s", "sliding window 5/s", "sliding log 5/s", "concurrency 5"} {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		lim, err := weir.New(limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lim.Reserve(1, time.Second); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// Errors that a caller sees have a code, too, even if the error was copied to name its rule.
func TestRefusedLimitsTellTheirCode(t *testing.T) {
	_, noFunction := weir.NewKeyedFunc[int](nil, weir.Options{})
	_, noLimit := weir.New(nil)
	for _, test := range []struct {
		err  error
		want weir.Code
	}{
		{noFunction, weir.CodeMissing},
		{noLimit, weir.CodeMissing},
		{ruleRefusal("=1/s"), weir.CodeName},
		{ruleRefusal("r=" + strings.Repeat("1/s and ", 16) + "1/s"), weir.CodeLimitCount},
		{ruleRefusal("r=0/s"), weir.CodeBounds},
		{ruleRefusal("r=1/s burst 9007199254740993"), weir.CodeBounds},
		{ruleRefusal("r=sliding log 1/s gap 2s"), weir.CodeBounds},
		{ruleRefusal("r=bursty 1/s over 1s"), weir.CodeOneSubject},
		{ruleRefusal("r=cycle 1/s from first use"), weir.CodeOneSubject},
		{validate(weir.Cycle{Rate: weir.PerSecond(1), Origin: 1, FromFirstUse: true}), weir.CodeBounds},
		{ruleRefusal("r=nginx limit_req 1/s"), weir.CodeDialect},
		{ruleRefusal("r=leaky bucket 1/s and 1/s"), weir.CodeAlone},
		{validate(weir.NginxLimitReq{Rate: weir.PerHour(1)}), weir.CodeDialect},
		{validate(weir.NginxLimitReq{Rate: weir.PerSecond(1), NoDelay: true, Delay: 1}), weir.CodeDialect},
		{validate(weir.WarmUp{Rate: weir.PerSecond(1), Over: 1e9, Cold: 0.5}), weir.CodeBounds},
	} {
		if refused, ok := errors.AsType[*weir.LimitError](test.err); !ok || refused.Code != test.want {
			t.Errorf("%v: got %+v, want the code %q", test.err, refused, test.want)
		}
	}
}

func ruleRefusal(text string) error {
	_, err := weir.ParseRule(text)
	return err
}

// isA reports whether an error is, or wraps, an error of type E.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
