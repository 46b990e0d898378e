// Package middleware is the code of docs/from/middleware.md: what users of httprate, tollbooth and ulule/limiter write with Weir.
package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
)

// count sends requests of one client at a time, and returns how many are admitted.
func count(limited func(http.Handler) http.Handler, n int, header ...string) (admitted int, last *httptest.ResponseRecorder) {
	handler := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range n {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		last = httptest.NewRecorder()
		if handler.ServeHTTP(last, r); last.Code == http.StatusOK {
			admitted++
		}
	}
	return admitted, last
}

// httprate.LimitByIP(100, time.Minute): a sliding window. A minute and a half later, half of the window before still counts.
func Example_httprate() {
	clock := httplimittest.NewClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	limited, err := httplimit.New(httplimit.Options{
		Engine: clock.Engine(),
		Rules:  []httplimit.Rule{{Limit: "client=sliding window 100/1m"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, refused := count(limited, 150)
	clock.Advance(90 * time.Second)
	second, _ := count(limited, 150)
	fmt.Println(first, "then", second)
	fmt.Println(refused.Code, "Retry-After", refused.Header().Get("Retry-After"))
	// Output:
	// 100 then 50
	// 429 Retry-After 61
}

// tollbooth.NewLimiter(1, nil).SetBurst(5): a token bucket.
func Example_tollbooth() {
	clock := httplimittest.NewClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	limited, err := httplimit.New(httplimit.Options{
		Engine: clock.Engine(),
		Rules:  []httplimit.Rule{{Limit: "token=token bucket 1/s burst 5", Key: httplimit.Header("X-Access-Token")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _ := count(limited, 10, "X-Access-Token", "abc123")
	clock.Advance(2 * time.Second)
	second, _ := count(limited, 10, "X-Access-Token", "abc123")
	other, _ := count(limited, 10, "X-Access-Token", "xyz098")
	fmt.Println(first, "then", second, "and of another token", other)
	// Output: 5 then 2 and of another token 5
}

// NewRateFromFormatted("1000-H"): a window that begins with the first request, here at 12:20, with the header fields of
// ulule/limiter. Half an hour later, half an hour of it is left.
func Example_ulule() {
	clock := httplimittest.NewClock(time.Date(2026, 1, 1, 12, 20, 0, 0, time.UTC))
	limited, err := httplimit.New(httplimit.Options{
		Engine:  clock.Engine(),
		Headers: httplimit.Legacy,
		Rules:   []httplimit.Rule{{Limit: "client=first window 1000/1h"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	count(limited, 9)
	clock.Advance(30 * time.Minute)
	_, last := count(limited, 1)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		fmt.Println(name, last.Header().Get(name))
	}
	// Output:
	// X-RateLimit-Limit 1000
	// X-RateLimit-Remaining 990
	// X-RateLimit-Reset 1800
}
