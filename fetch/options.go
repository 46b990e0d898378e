package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

// Options configure Run. A zero field has its default.
type Options struct {
	// Agent is the User-Agent field. Its first word, without a version, is the name that robots.txt knows the program
	// by. It should say where a site's owner can complain. Default: "weirfetch".
	Agent string
	// PerHost is the pace of each registrable domain: requests start at least Period/Count apart. Default: 1/s.
	PerHost weir.Rate
	// Total is the rate of all requests. Default: 20/s.
	Total weir.Rate
	// AtOnce bounds the requests of one domain in flight. Default: 2.
	AtOnce int
	// Bandwidth bounds the bytes of all bodies. Domains with a body to read share it equally, and leave the others what
	// they cannot use. Default: none.
	Bandwidth weir.Rate

	// Engine, if set, keeps the pace of each domain and the total for all crawlers that use the same engine, on any
	// machine, with the same Name and for the total the same Total. A domain then has at most one request on its way
	// among them, and the next one starts a gap after it was written: the gap of the crawler that sent it, whether by
	// PerHost or by a Crawl-delay. AtOnce, Bandwidth, pauses that a host asks for and everything else stay the
	// crawler's own. While the engine is away, requests wait for it. After another failure, a request
	// asks for 10 s, and then Run ends with an *EngineError. Default: none.
	Engine weir.Engine
	// Name tells groups of crawlers on one engine apart. Default: "", which is a group, too.
	Name string

	// Depth is how many links Page.Follow may lead away from a URL of the list. Default: 0, which follows none.
	Depth int
	// Count bounds the links that are followed. Default: 10,000.
	Count int

	// MaxBytes bounds a body. Default: 32 MiB.
	MaxBytes int64
	// Redirects bounds the redirects of one URL. Each keeps the pace and the rules of its host. Default: 5.
	Redirects int
	// Timeout bounds the wait for an answer and each pause within a body. A whole answer may take 20 times as long, not
	// counting the wait for a turn. Default: 30 s.
	Timeout time.Duration
	// MaxPause is the longest pause that Run obeys if a host asks for one, with Retry-After or with the RateLimit fields.
	// After a longer one, the URLs of the host fail with the time that it names. Default: 10 minutes.
	MaxPause time.Duration
	// MaxCrawlDelay is the longest Crawl-delay that Run obeys. URLs of a host with a longer one are skipped. Default:
	// 1 minute.
	MaxCrawlDelay time.Duration
	// Queue bounds the links of the sequence that Run holds. Default: 100,000.
	Queue int

	// Transport sends the requests. Default: NewTransport(false), which refuses private addresses.
	Transport http.RoundTripper
	// Known reports whether a URL needs no fetching, for example because an earlier run fetched it. Such a URL has no
	// Result. Known is called by several goroutines at once.
	Known func(Link) bool
	// Page is called for each answer with a status of 2xx, by several goroutines at once. An error ends the run, unless
	// it comes from reading the body or is a *PageError. If a body cannot be read to its end, Page is called again for the next attempt.
	Page func(context.Context, *Page) error
	// Done is called once for each URL, by one goroutine at a time.
	Done func(Result)
	// Progress, if set, estimates the time left while Run runs.
	Progress *Progress
}

// complete checks the options and fills in defaults.
func (o *Options) complete() error {
	for _, n := range []struct {
		field string
		value int64
	}{
		{"atOnce", int64(o.AtOnce)}, {"depth", int64(o.Depth)}, {"count", int64(o.Count)}, {"maxBytes", o.MaxBytes},
		{"redirects", int64(o.Redirects)}, {"timeout", int64(o.Timeout)}, {"maxPause", int64(o.MaxPause)},
		{"maxCrawlDelay", int64(o.MaxCrawlDelay)}, {"queue", int64(o.Queue)},
	} {
		if n.value < 0 {
			return optionError(n.field, "is negative")
		}
	}
	for field, rate := range map[string]weir.Rate{"perHost": o.PerHost, "total": o.Total, "bandwidth": o.Bandwidth} {
		if rate == (weir.Rate{}) {
			continue
		}
		if _, err := weir.New(weir.TokenBucket{Rate: rate, Burst: 1}); err != nil {
			return optionError(field, "%v", err)
		}
	}
	if strings.ContainsAny(o.Agent, "\r\n\x00") {
		return optionError("agent", "%q has a control character", o.Agent)
	}
	o.fillIn()
	return o.checkShared()
}

func (o *Options) fillIn() {
	setDefault(&o.Agent, "weirfetch")
	setDefault(&o.PerHost, weir.PerSecond(1))
	setDefault(&o.Total, weir.PerSecond(20))
	setDefault(&o.AtOnce, 2)
	setDefault(&o.Count, 10_000)
	setDefault(&o.MaxBytes, 32<<20)
	setDefault(&o.Redirects, 5)
	setDefault(&o.Timeout, 30*time.Second)
	setDefault(&o.MaxPause, 10*time.Minute)
	setDefault(&o.MaxCrawlDelay, time.Minute)
	setDefault(&o.Queue, 100_000)
	if o.Transport == nil {
		o.Transport = NewTransport(false)
	}
	if o.Page == nil {
		o.Page = func(_ context.Context, p *Page) error {
			_, err := io.Copy(io.Discard, p.Body)
			return err
		}
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func optionError(field, format string, values ...any) error {
	return &weir.OptionError{Op: "fetch", Field: field, Reason: fmt.Sprintf(format, values...)}
}

// obedient returns a transport that learns what servers announce. It does not wait for a pause that a server asks for:
// the frontier does, so that the pause, the pace and the total are one decision.
func obedient(base http.RoundTripper) (http.RoundTripper, error) {
	return httplimit.NewTransport(httplimit.TransportOptions{
		Base:     timed{base},
		Key:      func(r *http.Request) string { return siteOf(r.URL) },
		MaxPause: 1,
		Retries:  -1,
	})
}

// burstOf returns the bytes that may come at once: those of a tenth of a second, within 512 B and 32 KiB.
func burstOf(r weir.Rate) int64 {
	tenth := float64(r.Count) / r.Period.Seconds() / 10
	return int64(min(max(tenth, 512), 32<<10))
}
