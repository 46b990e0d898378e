package httplimit_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

func TestFieldsOfOtherServersAreThoseOfTheMiddleware(t *testing.T) {
	login, _ := weir.ParseRule("login=1/m and fixed window 100/d")
	other, _ := weir.ParseRule("other=2/h")
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	for _, c := range []struct {
		format   httplimit.Headers
		admitted string
		refused  string
	}{
		{httplimit.Draft11, `map[Ratelimit:["login-1";r=0;t=60] Ratelimit-Policy:["login-1";q=1;w=60, "login-2";q=100;w=86400, "other";q=2;w=3600]]`,
			`map[Ratelimit:["login-1";r=0;t=60] Ratelimit-Policy:["login-1";q=1;w=60, "login-2";q=100;w=86400, "other";q=2;w=3600] Retry-After:[60]]`},
		{httplimit.Legacy, `map[X-Ratelimit-Limit:[1] X-Ratelimit-Remaining:[0] X-Ratelimit-Reset:[60]]`,
			`map[Retry-After:[60] X-Ratelimit-Limit:[1] X-Ratelimit-Remaining:[0] X-Ratelimit-Reset:[60]]`},
		{httplimit.NoHeaders, `map[]`, `map[Retry-After:[60]]`},
	} {
		key := fmt.Sprint(c.format)
		for _, want := range []string{c.admitted, c.refused} {
			requests := []weir.Request{login.For(key, 1), other.For(key, 1)}
			d, err := engine.Take(t.Context(), requests...)
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{}
			httplimit.AddFields(h, c.format, d, nil, requests...)
			if got := fmt.Sprint(h); got != want {
				t.Errorf("format %v: got  %s\nwant %s", c.format, got, want)
			}
		}
	}
}

// The decision on several limits does not tell when the same fits again, so a server is asked, and only then.
func TestFieldsAskForAWaitThatTheDecisionDoesNotTell(t *testing.T) {
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	for text, want := range map[string]string{
		"one=1/s":            `"one";r=0;t=1;weir-wait-us=1000000`,
		"two=1/s and 2/s":    `"two-1";r=0;t=1;weir-wait-us=7`,
		"wide=5/s and 9/s":   `"wide-1";r=4;t=1`,
		"long=1/h and 100/d": `"long-1";r=0;t=3600`,
	} {
		rule, err := weir.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		d, err := engine.Take(t.Context(), rule.For("k", 1))
		httplimit.AddFields(h, httplimit.Draft11, d, func() time.Duration { return 7 * time.Microsecond }, rule.For("k", 1))
		if got := h.Get("RateLimit"); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
}

// Neither weir.Unlimited nor the policy of a Guard that admits everything has a limit to tell.
func TestAnAdmissionWithoutALimitHasNoFields(t *testing.T) {
	rule, _ := weir.ParseRule("login=1/m")
	h := http.Header{}
	httplimit.AddFields(h, httplimit.Draft11, weir.Decision{Allowed: true, Rule: "login", Key: "k", Limit: weir.MaxCount, Remaining: weir.MaxCount}, nil, rule.For("k", 1))
	if len(h) != 0 {
		t.Errorf("got %v", h)
	}
}
