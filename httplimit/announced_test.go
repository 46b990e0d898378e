package httplimit_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/randtest"
)

// announcing is a server with a limit, and how far away its clients are.
type announcing struct {
	limit   string
	perSec  float64       // the rate in the long run
	refill  time.Duration // in which the capacity comes back
	count   int64         // of the capacity
	oneWay  time.Duration
	workers int
}

// draw returns a limit: a capacity that comes back within a millisecond to an hour. The way to the server takes less than
// a fiftieth of that time.
func draw(random *rand.Rand) announcing {
	upTo := func(n int64) int64 { return random.Int64N(n) + 1 }
	count := [...]int64{1, upTo(3), upTo(10), upTo(200)}[random.IntN(4)]
	units := [...]time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute}
	refill := time.Duration(upTo(60)) * units[random.IntN(len(units))]
	refill = max(refill, time.Duration(count)*20*time.Microsecond) // 50,000 requests a second
	a := announcing{perSec: float64(count) / refill.Seconds(), refill: refill, count: count, workers: int(min(upTo(8), count))}
	text := fmt.Sprintf("%d/%s", count, refill)
	a.limit = [...]string{"token bucket " + text, "fixed window " + text, "sliding window " + text, "sliding log " + text,
		"rate gate " + text, "cycle " + text}[random.IntN(6)]
	if strings.HasPrefix(a.limit, "sliding window") { // steady pressure gets one unit less, and of a single one every second
		a.perSec *= max(float64(count-1)/float64(count), 0.5)
	}
	switch random.IntN(6) {
	case 0: // a burst of its own
		burst := upTo(2 * count)
		a.limit, a.count, a.perSec = fmt.Sprintf("token bucket %s burst %d", text, burst), burst, float64(count)/refill.Seconds()
		a.refill = refill * time.Duration(burst) / time.Duration(count)
	case 1: // another limit beside
		wide := fmt.Sprintf("fixed window %d/%s", 3*count, 2*refill)
		a.limit += " and " + wide
	}
	a.oneWay = time.Duration(random.Int64N(int64(a.refill)/50/max(a.count/int64(a.workers), 1) + 1))
	return a
}

// open returns the server.
func (a announcing) open(t testing.TB) *server {
	h := wrap(t, httplimit.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []httplimit.Rule{{Limit: "client=" + a.limit}}}, ok)
	return &server{handler: h, oneWay: func() time.Duration { return a.oneWay }}
}

// span is a time in which the capacity comes back some 30 times, and 300 requests are admitted.
func (a announcing) span() time.Duration {
	return max(30*a.refill, time.Duration(300/a.perSec*float64(time.Second)))
}

// ends is a client that asks until a time.
func (a announcing) ends(t testing.TB, client http.RoundTripper, end time.Time) {
	var all sync.WaitGroup
	for range a.workers {
		all.Go(func() {
			for time.Now().Before(end) {
				if status, err := ask(client, "http://api.example/"); err != nil || status != 200 {
					t.Errorf("%s: a request got %d, %v, want 200", a.limit, status, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A Transport reaches 90 % of each limit that the middleware announces, and is refused less than 1 % of its requests.
func TestATransportReachesEachAnnouncedRate(t *testing.T) {
	for seed := range randtest.Seeds(t, 120, 40) {
		synctest.Test(t, func(t *testing.T) {
			random := randtest.New(seed)
			a := draw(random)
			time.Sleep(time.Duration(random.Int64N(int64(a.refill))))
			s := a.open(t)
			transport := newTransport(t, httplimit.TransportOptions{Base: s, MaxPause: 24 * time.Hour})
			begun := time.Now()
			a.ends(t, transport, begun.Add(a.span()))
			took := time.Since(begun)
			want := 0.9 * a.perSec * took.Seconds()
			if admitted := s.requests - len(s.refused); float64(admitted) < want || 100*len(s.refused) >= s.requests {
				t.Errorf("seed %d: %s from %v away, %d at a time: %d of %d requests were admitted in %v; want %.0f at least, and less than 1 %% refused",
					seed, a.limit, a.oneWay, a.workers, admitted, s.requests, took, want)
			}
		})
	}
}

// letter is a client that follows draft 11 by the letter: Retry-After goes first, it sends no more than r requests until t has
// passed, and it ignores parameters that it does not know.
type letter struct {
	server *server
	t      testing.TB

	until time.Time
	left  int64
}

// What draft 11 says about the fields that a server may send.
var (
	draftPolicy = regexp.MustCompile(`^"[ -~]+";q=(\d{1,15})(;qu="concurrent-requests")?(;w=([1-9]\d{0,14}))?(;[a-z][a-z0-9-]*=\d{1,15})*$`)
	draftLimit  = regexp.MustCompile(`^"([ -~]+)";r=(\d{1,15})(;t=(\d{1,15}))?(;weir-[a-z0-9-]+=\d{1,15})*$`)
)

func (c *letter) RoundTrip(r *http.Request) (*http.Response, error) {
	if now := time.Now(); now.Before(c.until) && c.left == 0 {
		time.Sleep(c.until.Sub(now))
	}
	c.left = max(c.left-1, 0)
	resp, err := c.server.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	policies := resp.Header.Get("RateLimit-Policy")
	for _, item := range strings.Split(policies, ", ") {
		if !draftPolicy.MatchString(item) {
			c.t.Errorf("RateLimit-Policy has %s", item)
		}
	}
	m := draftLimit.FindStringSubmatch(resp.Header.Get("RateLimit"))
	if m == nil || !strings.Contains(policies, `"`+m[1]+`";`) {
		c.t.Fatalf("RateLimit is %s, and the policies are %s", resp.Header.Get("RateLimit"), policies)
	}
	wait, _ := strconv.Atoi(m[4])
	if after := resp.Header.Get("Retry-After"); after != "" {
		m[2] = "0"
		if wait, err = strconv.Atoi(after); err != nil || wait < 1 {
			c.t.Errorf("Retry-After is %q", after)
		}
	}
	c.left, _ = strconv.ParseInt(m[2], 10, 64)
	c.until = time.Now().Add(time.Duration(wait) * time.Second)
	return resp, nil
}

func TestAClientThatFollowsTheDraftIsSeldomRefused(t *testing.T) {
	for seed := range randtest.Seeds(t, 120, 40) {
		synctest.Test(t, func(t *testing.T) {
			random := randtest.New(seed)
			a := draw(random)
			time.Sleep(time.Duration(random.Int64N(int64(a.refill))))
			s := a.open(t)
			c := &letter{server: s, t: t}
			for range 300 {
				resp, err := c.RoundTrip(toHost(t, t.Context(), "api.example"))
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			if len(s.refused) >= 3 {
				t.Errorf("seed %d: %s from %v away refused %d of %d requests, want less than 1 %%", seed, a.limit, a.oneWay, len(s.refused), s.requests)
			}
		})
	}
}
