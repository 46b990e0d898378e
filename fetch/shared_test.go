package fetch_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

// crawlTogether runs a crawl for each list of URLs at the same time, all on one engine, and returns how long they took.
func crawlTogether(t *testing.T, n *network, o fetch.Options, lists ...[]string) time.Duration {
	t.Helper()
	o.Engine = weir.NewMemory(weir.MemoryOptions{})
	o.Transport = n.transport
	began, ended := time.Now(), make(chan map[string]fetch.Result)
	for _, list := range lists {
		go func() {
			results := map[string]fetch.Result{}
			own := o
			own.Done = func(r fetch.Result) { results[r.URL] = r }
			if err := fetch.Run(t.Context(), fetch.URLs(list...), own); err != nil {
				t.Errorf("Run: %v", err)
			}
			ended <- results
		}()
	}
	all := map[string]fetch.Result{}
	for range lists {
		maps.Copy(all, <-ended)
	}
	for _, url := range slices.Concat(lists...) {
		if all[url].Outcome != fetch.Fetched {
			t.Errorf("%s: %+v, want it fetched", url, all[url])
		}
	}
	return time.Since(began)
}

// split deals URLs to crawlers.
func split(urls []string, crawlers int) [][]string {
	lists := make([][]string, crawlers)
	for i, url := range urls {
		lists[i%crawlers] = append(lists[i%crawlers], url)
	}
	return lists
}

func TestCrawlersOnOneEngineKeepOnePaceForAHostAndOneTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(hello), "b.example": free(hello), "c.example": free(hello)})
		urls := slices.Concat(pagesOf("a.example", 12), pagesOf("b.example", 12), pagesOf("c.example", 12))
		took := crawlTogether(t, n, fetch.Options{PerHost: weir.PerSecond(1), Total: weir.PerSecond(2)}, split(urls, 3)...)
		for host := range n.listeners {
			wantSpacing(t, host, n.of(host), time.Second)
		}
		wantSpacing(t, "the total", n.of(""), 500*time.Millisecond)
		// 36 pages, and robots.txt of three hosts for each of three crawlers, at 2/s.
		if least := 44 * 500 * time.Millisecond; took < least || took > least+5*time.Second {
			t.Errorf("45 requests of three crawlers took %v, want %v to %v", took, least, least+5*time.Second)
		}
	})
}

// A crawler whose connection takes long keeps the others from the host until it has sent its request.
func TestTheSharedGapCountsFromTheWrittenRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			hello(w, r)
		})})
		var dials atomic.Int64
		n.dialing = func(string) time.Duration { return time.Duration(dials.Add(1)%3) * 900 * time.Millisecond }
		crawlTogether(t, n, fetch.Options{}, split(pagesOf("a.example", 20), 2)...)
		wantSpacing(t, "a.example", n.of("a.example"), time.Second)
	})
}

func TestCrawlersShareACrawlDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": withRobots("user-agent: *\ncrawl-delay: 10\n", hello)})
		crawlTogether(t, n, fetch.Options{}, split(pagesOf("a.example", 6), 2)...)
		wantSpacing(t, "a.example", n.of("a.example"), 10*time.Second)
	})
}

// Crawlers with another name, or without an engine, share nothing.
func TestCrawlersOfOtherNamesShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(hello)})
		engine := weir.NewMemory(weir.MemoryOptions{})
		began, ended := time.Now(), make(chan error)
		for i, name := range []string{"", "nightly"} {
			go func() {
				ended <- fetch.Run(t.Context(), fetch.URLs(pagesOf("a.example", 10)[5*i:5*i+5]...), fetch.Options{Engine: engine, Name: name, Transport: n.transport})
			}()
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("six requests of each crawler took %v, want 5s", took)
		}
	})
}

// An interrupted crawler leaves nothing behind that holds up another one.
func TestAnInterruptedCrawlerReleasesTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(hello)})
		var quick atomic.Bool
		n.dialing = func(string) time.Duration {
			if quick.Load() {
				return 0
			}
			return 20 * time.Second
		}
		engine := weir.NewMemory(weir.MemoryOptions{})
		ctx, interrupt := context.WithTimeout(t.Context(), 5*time.Second)
		defer interrupt()
		o := fetch.Options{Engine: engine, Transport: n.transport}
		if err := fetch.Run(ctx, fetch.URLs("http://a.example/"), o); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run: %v, want the end of its context", err)
		}
		quick.Store(true)
		began := time.Now()
		if err := fetch.Run(t.Context(), fetch.URLs("http://a.example/"), o); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the next crawler took %v, want two requests a second apart", took)
		}
		time.Sleep(time.Minute) // for the connection that nobody waits for
	})
}

func TestAnEngineThatFailsWithoutEndEndsTheRun(t *testing.T) {
	errGone := errors.New("no connection")
	for failures, ends := range map[int]bool{3: false, 1000: true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, map[string]http.Handler{"a.example": free(hello)})
			left := failures
			engine := weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
				if left--; left >= 0 {
					return weir.Answer{}, errGone
				}
				return next(ctx, c)
			})
			began := time.Now()
			err := fetch.Run(t.Context(), fetch.URLs("http://a.example/"), fetch.Options{Engine: engine, Transport: n.transport})
			failed, is := errors.AsType[*fetch.EngineError](err)
			if is != ends || ends && !errors.Is(failed, errGone) {
				t.Errorf("after %d failures: %v", failures, err)
			}
			if took := time.Since(began); ends && took.Round(time.Second) != 10*time.Second {
				t.Errorf("Run ended after %v, want 10s", took)
			}
		})
	}
}

func TestOptionsThatCrawlersCannotShare(t *testing.T) {
	engine := weir.NewMemory(weir.MemoryOptions{})
	for want, o := range map[string]fetch.Options{
		`name "x" needs an engine`:                                     {Name: "x"},
		"perHost 1/300h is slower than a request in 277h46m40s":        {Engine: engine, PerHost: weir.Per(1, 300*time.Hour)},
		`name weir: rule "fetch site a=b": name is not 1 to 256 bytes`: {Engine: engine, Name: "a=b"},
	} {
		if err := fetch.Run(t.Context(), fetch.URLs(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
