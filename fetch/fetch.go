// Package fetch crawls politely. [Run] fetches URLs of many hosts at once, and keeps a pace for each registrable
// domain, a total rate, and one bandwidth that the domains share. It obeys robots.txt (RFC 9309) and Retry-After.
//
//	err := fetch.Run(ctx, fetch.URLs("https://example.com/", "https://example.org/"), fetch.Options{
//		Depth: 2,
//		Page: func(ctx context.Context, p *fetch.Page) error {
//			for link, err := range p.Links() {
//				if err != nil {
//					return err
//				}
//				p.Follow(link)
//			}
//			return nil
//		},
//		Done: func(r fetch.Result) { fmt.Println(r.Outcome, r.URL, r.Reason) },
//	})
//
// A URL is sent when its domain and the total admit it at the same instant, so domains keep their spacing even while the
// total holds all of them back. Each URL ends in one [Result].
//
// [NewTransport] refuses private addresses, as the address that is dialed. [FileName] names a file for a URL.
package fetch

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// Link is a URL to fetch, and the number of links that lead to it from a URL of the caller's list.
type Link struct {
	URL   string
	Depth int
}

// URLs returns links of depth 0.
func URLs(urls ...string) iter.Seq[Link] {
	return func(yield func(Link) bool) {
		for _, u := range urls {
			if !yield(Link{URL: u}) {
				return
			}
		}
	}
}

// Run fetches the links, and the links that Options.Page follows, until none is left. It reads the sequence as it has
// room for it. It returns nil when every URL has its Result, the first error of Options.Page, or the cause of the
// end of ctx. URLs without a Result were then not finished.
func Run(ctx context.Context, links iter.Seq[Link], options Options) error {
	if err := options.complete(); err != nil {
		return err
	}
	c, err := newCrawl(options)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.stop = stop
	go c.feed(ctx, links) // is not waited for: the sequence may be blocked in a read
	c.dispatch(ctx)
	c.working.Wait()
	if c.shared != nil {
		c.shared.flush()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("fetch: run: %w", context.Cause(ctx))
	}
	return nil
}

// crawl is one run.
type crawl struct {
	Options
	*frontier
	obedient  http.RoundTripper // fails with a *weir.WaitError while the server asks for a pause
	bandwidth pace.Pacer        // nil without a bound
	shared    *shared           // nil without an engine
	stop      context.CancelCauseFunc
	working   sync.WaitGroup

	reporting sync.Mutex // Options.Done is called by one goroutine at a time
}

// feed adds the links as there is room for them.
func (c *crawl) feed(ctx context.Context, links iter.Seq[Link]) {
	defer context.AfterFunc(ctx, c.wakeFeeder)()
	for link := range links {
		if !c.awaitRoom(ctx) {
			return
		}
		c.addSeed(link)
	}
	c.fed()
}

// addSeed adds a link of the caller's list.
func (c *crawl) addSeed(link Link) {
	u, err := canonical(link.URL)
	if err != nil {
		c.report(Result{URL: link.URL, Outcome: Skipped, Reason: err.Error(), Depth: link.Depth, Started: time.Now()})
		return
	}
	if c.Known != nil && c.Known(Link{URL: u.String(), Depth: link.Depth}) {
		return
	}
	c.add(&task{url: u, asked: u.String(), home: siteOf(u), depth: link.Depth})
}

// report passes results on.
func (c *crawl) report(results ...Result) {
	if c.Done == nil {
		return
	}
	c.reporting.Lock()
	defer c.reporting.Unlock()
	for _, r := range results {
		c.Done(r)
	}
}

// newCrawl makes the limiters of a run.
func newCrawl(o Options) (*crawl, error) {
	total, err := weir.New(weir.TokenBucket{Rate: o.Total, Burst: 1})
	if err != nil {
		return nil, optionError("total", "%v", err)
	}
	c := &crawl{Options: o, frontier: newFrontier(o, total)}
	if o.Progress != nil {
		o.Progress.frontier.Store(c.frontier)
	}
	if c.obedient, err = obedient(o.Transport); err != nil {
		return nil, err
	}
	if c.shared, err = newShared(&o); err != nil {
		return nil, err
	}
	if o.Bandwidth != (weir.Rate{}) {
		if c.bandwidth, err = weir.New(weir.TokenBucket{Rate: o.Bandwidth, Burst: burstOf(o.Bandwidth)}); err != nil {
			return nil, optionError("bandwidth", "%v", err)
		}
	}
	return c, nil
}
