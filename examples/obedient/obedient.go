// Package obedient shows a client that obeys a server and knows only its URL.
//
// Start the server in one terminal and the client in another:
//
//	go run ./examples/obedient/server
//	go run ./examples/obedient/client http://127.0.0.1:8081/
//
// The server admits 100 requests in any 10 seconds, and announces that in its answers. The client gets 1,000 answers in
// little more than the 90 seconds that this takes at least, and is never refused.
package obedient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weirflow/weir/httplimit"
)

// Server returns a handler that admits what the limit says, such as "sliding log 100/10s", from all clients together.
func Server(limit string) (http.Handler, error) {
	limited, err := httplimit.PerKey(limit, httplimit.Everyone)
	if err != nil {
		return nil, err
	}
	return limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })), nil
}

// Report is what a run of the client has seen.
type Report struct {
	Answers int // with status 200
	Refused int // with status 429
	Took    time.Duration
}

func (r Report) String() string {
	return fmt.Sprintf("%d answers and %d refusals in %v", r.Answers, r.Refused, r.Took.Round(time.Millisecond))
}

// inFlight is the number of requests that the client would have in flight if no server held it back.
const inFlight = 32

// Get gets a URL n times through a base, which is nil for the network. It calls progress after every hundredth answer.
func Get(ctx context.Context, base http.RoundTripper, url string, n int, progress func(Report)) (Report, error) {
	transport, err := httplimit.NewTransport(httplimit.TransportOptions{Base: base, Retries: -1})
	if err != nil {
		return Report{}, err
	}
	run := run{client: &http.Client{Transport: transport}, url: url, left: n, start: time.Now(), progress: progress}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range inFlight {
		all.Go(func() {
			if err := run.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	run.report.Took = time.Since(run.start)
	return run.report, context.Cause(ctx)
}

// run is what the workers share.
type run struct {
	client   *http.Client
	url      string
	start    time.Time
	progress func(Report)

	mu     sync.Mutex
	left   int
	report Report
}

// work gets the URL until enough workers have.
func (r *run) work(ctx context.Context) error {
	for r.next() {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
		if err != nil {
			return err
		}
		resp, err := r.client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
		r.count(resp.StatusCode)
	}
	return nil
}

func (r *run) next() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left--
	return r.left >= 0
}

func (r *run) count(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status == http.StatusTooManyRequests {
		r.report.Refused++
		return
	}
	r.report.Answers++
	if r.report.Took = time.Since(r.start); r.report.Answers%100 == 0 && r.progress != nil {
		r.progress(r.report)
	}
}
