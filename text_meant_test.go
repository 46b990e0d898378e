package weir_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// meantLimits are texts of other limiters, of English and of haste, and what their errors suggest.
var meantLimits = map[string]string{
	"100/minute": "100/m", "5/sec": "5/s", "10/hour": "10/h", "5-M": "5/m", "1000-H": "1000/h", "10/S": "10/s",
	"100 per minute": "100/m", "5 requests per 10 seconds": "5/10s", "10 req/s": "10/s", "100rpm": "100/m", "20 rps": "20/s",
	"1000 a day": "1000/d", "100 every 15 min": "100/15m", "1 per 1h30m": "1/1h30m", "5 / s": "5/s", "60": "60/s",
	"10r/s burst=20": "10/s burst 20", "5/m,100/d": "5/m and 100/d", "10/second;1000/hour": "10/s and 1000/h",
	"sliding-window 10/m": "sliding window 10/m", "fixed_window": "fixed window 10/s", "Fixed Window 5/m": "fixed window 5/m",
	"token-bucket 10/s": "token bucket 10/s", "TokenBucket 10/s burst=20": "token bucket 10/s burst 20", "token bucket 10": "token bucket 10/s",
	"tokn buckets 10/s brust 20": "token bucket 10/s burst 20", "leaky bukket 5/s queue: 10": "leaky bucket 5/s queue 10",
	"GCRA 5/s": "token bucket 5/s", "RateGate 2/s": "rate gate 2/s", "rategate 2/s": "rate gate 2/s",
	"SlidingLog 5/10s gap=1s": "sliding log 5/10s gap 1s", "sliding log 5/10s gap 2 seconds": "sliding log 5/10s gap 2s",
	"rolling window 5 per 2 min": "sliding window 5/2m",
	"guava 5":                    "bursty 5/s over 1s", "SmoothBursty 5": "bursty 5/s over 1s", "bursty 5/s": "bursty 5/s over 1s",
	"SmoothWarmingUp 5/s over 4s": "warm up 5/s over 4s", "warmup 5/s over=4s": "warm up 5/s over 4s",
	"concurrency=20": "concurrency 20", "Semaphore 20": "concurrency 20", "concurency 20 lease=30sec": "concurrency 20 lease 30s",

	"sliding door 1/s": "", "60/fortnight": "", "token bucket 1.5/s": "", "0/minute": "", "": "", "!": "", "/": "",
	"token bucket 10/s queue 5": "", strings.Repeat("5/sec,", 50): "",
}

func TestErrorsOfBrokenTextsNameTheTextThatWasMeant(t *testing.T) {
	for text, want := range meantLimits {
		_, err := weir.ParseLimits(text)
		syntax, ok := errors.AsType[*weir.SyntaxError](err)
		if !ok || syntax.Meant != want {
			t.Errorf("%q: got %v, want a *SyntaxError that means %q", text, err, want)
			continue
		}
		if want == "" {
			continue
		}
		if _, err := weir.ParseLimits(want); err != nil {
			t.Errorf("%q means %q, which cannot be read: %v", text, want, err)
		}
		if !strings.HasSuffix(err.Error(), `; did you mean "`+want+`"?`) {
			t.Errorf("%q: got %q, want an error that ends with the text %q", text, err, want)
		}
	}
}

// An error offers only what the same function reads: one limit, a rate, a rule.
func TestTheTextThatWasMeantSuitsTheFunction(t *testing.T) {
	limit := func(text string) error { _, err := weir.ParseLimit(text); return err }
	rate := func(text string) error { _, err := weir.ParseRate(text); return err }
	rule := func(text string) error { _, err := weir.ParseRule(text); return err }
	for _, c := range []struct {
		parse      func(string) error
		text, want string
	}{
		{limit, "5/m,100/d", ""},
		{limit, "5/minute", "5/m"},
		{rate, "token-bucket 5/s", ""},
		{rate, "5/minute", "5/m"},
		{rate, "1 per 90 seconds", "1/90s"},
		{rule, "login=TokenBucket 5/m burst=5", "login=token bucket 5/m burst 5"},
		{rule, " login = 5/m,100/d", "login=5/m and 100/d"},
		{rule, "60/m", "name=60/m"},
		{rule, "concurrency=20", "name=concurrency 20"},
		{rule, "TokenBucket 10/s burst=20", "name=token bucket 10/s burst 20"},
		{rule, "login=guava 5", ""},
		{rule, "login=", ""},
	} {
		syntax, ok := errors.AsType[*weir.SyntaxError](c.parse(c.text))
		if !ok || syntax.Meant != c.want {
			t.Errorf("%q: got %+v, want a *SyntaxError that means %q", c.text, syntax, c.want)
		} else if err := c.parse(c.want); c.want != "" && err != nil {
			t.Errorf("%q means %q, which cannot be read: %v", c.text, c.want, err)
		}
	}
}
