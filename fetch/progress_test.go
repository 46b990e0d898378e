package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

// The estimate is right for a site with a Crawl-delay, for one with many pages, for one that answers slowly, and for
// many sites under the total. The end of the others does not shorten it.
func TestTheTimeLeftIsThatOfTheSlowestSite(t *testing.T) {
	slowly := func(w http.ResponseWriter, r *http.Request) { time.Sleep(8 * time.Second); hello(w, r) }
	many, urls := map[string]http.Handler{}, []string(nil)
	for i := range 100 {
		host := fmt.Sprintf("h%d.example", i)
		many[host] = free(hello)
		urls = append(urls, pagesOf(host, 3)...)
	}
	for name, c := range map[string]struct {
		hosts map[string]http.Handler
		urls  []string
	}{
		"crawl-delay": {map[string]http.Handler{"a.example": withRobots("user-agent: *\ncrawl-delay: 30\n", hello)}, pagesOf("a.example", 13)},
		"many pages":  {map[string]http.Handler{"a.example": free(hello)}, pagesOf("a.example", 300)},
		"slow":        {map[string]http.Handler{"a.example": free(slowly)}, pagesOf("a.example", 60)},
		"total":       {many, urls},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.hosts["quick.example"] = free(hello)
				n := newNetwork(t, c.hosts)
				var p fetch.Progress
				ctx, cancel := context.WithCancel(t.Context())
				guessed := map[time.Time]time.Duration{}
				var sampler sync.WaitGroup
				sampler.Go(func() {
					for ctx.Err() == nil {
						time.Sleep(20 * time.Second)
						guessed[time.Now()] = p.Left()
					}
				})
				crawl(t, n, fetch.Options{Progress: &p, Total: weir.PerSecond(5)}, append(c.urls, pagesOf("quick.example", 5)...)...)
				cancel()
				sampler.Wait()
				arrivals := n.of("")
				end := arrivals[len(arrivals)-1].at
				for at, left := range guessed {
					if want := max(end.Sub(at), 0); left < want*8/10-2*time.Second || left > want*12/10+2*time.Second {
						t.Errorf("%v before the last request, %v were left", want, left)
					}
				}
				if time.Sleep(time.Minute); len(guessed) < 3 || p.Left() != 0 {
					t.Errorf("%d estimates, and at the end %v", len(guessed), p.Left())
				}
			})
		})
	}
}
