package httplimit_test

import (
	"fmt"
	"net/http"
	"testing"

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
		fields := httplimit.NewFields(c.format, login) // it makes those of other itself
		key := fmt.Sprint(c.format)
		for _, want := range []string{c.admitted, c.refused} {
			requests := []weir.Request{login.For(key, 1), other.For(key, 1)}
			d, err := engine.Take(t.Context(), requests...)
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{}
			fields.Add(h, d, requests...)
			if got := fmt.Sprint(h); got != want {
				t.Errorf("format %v: got  %s\nwant %s", c.format, got, want)
			}
		}
	}
}
