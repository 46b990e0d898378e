package fetch_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

// wantSpacing checks that arrivals are at least a gap apart.
func wantSpacing(t *testing.T, what string, arrivals []arrival, gap time.Duration) {
	t.Helper()
	for i := 1; i < len(arrivals); i++ {
		if got := arrivals[i].at.Sub(arrivals[i-1].at); got < gap {
			t.Errorf("%s: %s came %v after %s, want %v at least", what, arrivals[i].path, got, arrivals[i-1].path, gap)
		}
	}
}

// Two gates in a chain once released one host three times at one instant: the host's gate had admitted its callers one
// by one, and all waited at the total's.
func TestHostsKeepTheirSpacingWhileTheTotalHoldsAllBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(hello), "b.example": free(hello), "c.example": free(hello)})
		urls := slices.Concat(pagesOf("a.example", 12), pagesOf("b.example", 12), pagesOf("c.example", 12))
		began := time.Now()
		crawl(t, n, fetch.Options{PerHost: weir.Per(1, time.Second), Total: weir.Per(2, time.Second), AtOnce: 3}, urls...)
		for host := range n.listeners {
			wantSpacing(t, host, n.of(host), time.Second)
		}
		wantSpacing(t, "the total", n.of(""), 500*time.Millisecond)
		// 39 requests, 3 of them for robots.txt, at 2/s; 3 s more because a host may be within its gap.
		if took := time.Since(began); took > 22*time.Second {
			t.Errorf("it took %v, want 19s to 22s", took)
		}
	})
}

func TestHostsTakeTurnsUnderTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts, urls := map[string]http.Handler{}, []string(nil)
		for i := range 10 {
			host := fmt.Sprintf("h%d.example", i)
			hosts[host] = free(hello)
			urls = append(urls, pagesOf(host, 1+40*(i%2))...) // every other has 41 pages
		}
		n := newNetwork(t, hosts)
		crawl(t, n, fetch.Options{PerHost: weir.PerSecond(100), Total: weir.PerSecond(10)}, urls...)
		for i := range 10 { // the small hosts are done after two rounds
			host := fmt.Sprintf("h%d.example", i)
			if all := n.of(host); i%2 == 0 && all[len(all)-1].at.Sub(n.of("")[0].at) > 2*time.Second {
				t.Errorf("%s has had its two requests after %v, want within 2s", host, all[len(all)-1].at.Sub(n.of("")[0].at))
			}
		}
	})
}

func TestSubdomainsShareOnePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := map[string]http.Handler{
			"www.shop.co.uk": free(hello), "img.shop.co.uk": free(hello), // one registrable domain
			"ann.github.io": free(hello), "bob.github.io": free(hello), // two
			"192.0.2.1": free(hello), "192.0.2.2": free(hello), // two
		}
		n := newNetwork(t, hosts)
		var urls []string
		for host := range hosts {
			urls = append(urls, pagesOf(host, 5)...)
		}
		began := time.Now()
		crawl(t, n, fetch.Options{}, urls...)
		shop := n.of("www.shop.co.uk")
		shop = append(shop, n.of("img.shop.co.uk")...)
		slices.SortFunc(shop, func(a, b arrival) int { return a.at.Compare(b.at) })
		wantSpacing(t, "shop.co.uk", shop, time.Second)
		if took := time.Since(began); took < 11*time.Second || took > 12*time.Second {
			t.Errorf("12 requests to one domain beside others took %v, want 11s", took)
		}
		for _, host := range []string{"ann.github.io", "bob.github.io", "192.0.2.1"} {
			if all := n.of(host); all[len(all)-1].at.Sub(began) > 6*time.Second {
				t.Errorf("%s waited for another domain: its last request came after %v", host, all[len(all)-1].at.Sub(began))
			}
		}
	})
}

// A connection takes time, so a gap between turns is none between requests.
func TestTheGapCountsFromTheWrittenRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(w http.ResponseWriter, r *http.Request) { time.Sleep(2 * time.Second); hello(w, r) }
		n := newNetwork(t, map[string]http.Handler{"a.example": free(slow)})
		first := true
		n.dialing = func(string) time.Duration {
			if first = !first; first {
				return 0
			}
			return 900 * time.Millisecond
		}
		crawl(t, n, fetch.Options{AtOnce: 3}, pagesOf("a.example", 10)...)
		wantSpacing(t, "a.example", n.of("a.example"), time.Second)
	})
}

func TestAtMostAtOnceRequestsOfAHostAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFlight, most := make(chan int, 1), 0
		inFlight <- 0
		count := func(by int) {
			now := <-inFlight + by
			most = max(most, now)
			inFlight <- now
		}
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
			count(1)
			time.Sleep(10 * time.Second)
			count(-1)
			hello(w, r)
		})})
		began := time.Now()
		crawl(t, n, fetch.Options{AtOnce: 3}, pagesOf("a.example", 9)...)
		if most != 3 {
			t.Errorf("%d requests were in flight, want 3", most)
		}
		if took := time.Since(began); took > 35*time.Second {
			t.Errorf("9 requests of 10s, 3 at once, took %v, want about 33s", took)
		}
	})
}

func TestAHangingHostDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := map[string]http.Handler{"hanging.example": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
		urls := pagesOf("hanging.example", 5)
		for i := range 99 {
			host := fmt.Sprintf("h%d.example", i)
			hosts[host] = free(hello)
			urls = append(urls, pagesOf(host, 3)...)
		}
		n := newNetwork(t, hosts)
		began := time.Now()
		last := began
		results := crawl(t, n, fetch.Options{Total: weir.PerSecond(1000)}, urls...)
		for url, r := range results {
			if url[:14] == "http://hanging" {
				if r.Outcome != fetch.Failed {
					t.Errorf("%s: %+v, want it failed", url, r)
				}
			} else if last = r.Started; r.Outcome != fetch.Fetched || last.Sub(began) > 5*time.Second {
				t.Errorf("%s: %s after %v, want it fetched within 5s", url, r.Outcome, last.Sub(began))
			}
		}
	})
}
