package httplimit_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/httplimit"
)

// leaking is a server like Shopify's: a bucket of some size that leaks all its units in 20 s, and says how full it is.
type leaking struct {
	size  int
	used  float64
	since time.Time
	calls []time.Time
	full  int // calls that did not fit
}

func (l *leaking) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now()
	l.used = max(l.used-now.Sub(l.since).Seconds()*float64(l.size)/20, 0)
	l.since, l.calls = now, append(l.calls, now)
	if l.used+1 > float64(l.size)+1e-6 {
		l.full++
		return replies(r, 429, "", "Retry-After: 2.0"), nil
	}
	l.used++
	return replies(r, 200, "", fmt.Sprintf("X-Shopify-Shop-Api-Call-Limit: %d/%d", int(l.used+1-1e-6), l.size)), nil
}

// A full bucket leaks a unit after a fraction of a second, so the next request waits for one, and not until it is empty.
func TestAFullLeakingBucketIsAskedWhenItHasLeakedOneUnit(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 40 {
		size := []int{1, 20, 40, 80, 400}[r.IntN(5)]
		server := &leaking{size: size, used: float64(r.IntN(size))}
		before := server.used
		synctest.Test(t, func(t *testing.T) {
			server.since = time.Now()
			transport := newTransport(t, httplimit.TransportOptions{Base: server})
			const n = 60
			for range n {
				if status, err := ask(transport, "http://shop.example"); status != 200 || err != nil {
					t.Fatalf("%d, %v, want an admitted request", status, err)
				}
			}
			unit := 20 * time.Second / time.Duration(size)
			least := time.Duration(max(n-size+int(before), 0)) * unit
			if took := time.Since(server.calls[0]); server.full > 0 || took > least+2*unit {
				t.Errorf("a bucket of %d with %v units in it: %d requests took %v, of which %d were refused; the bucket leaks as much in %v",
					size, before, n, took, server.full, least)
			}
		})
	}
}
