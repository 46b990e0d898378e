// Command crawler fetches the URLs of its arguments and the pages that they link to on the same site, politely, and
// prints when it asked for each. Without arguments it crawls three hosts in its own memory, which takes five seconds.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

func main() {
	network, urls := http.RoundTripper(fetch.NewTransport(false)), os.Args[1:]
	if len(urls) == 0 {
		network, urls = web{}, []string{"http://a.example/", "http://b.example/", "http://c.example/"}
	}
	if err := crawl(context.Background(), os.Stdout, network, urls...); err != nil {
		fmt.Fprintln(os.Stderr, "crawler:", err)
		os.Exit(1)
	}
}

// crawl prints a table of the pages with the time of each request.
func crawl(ctx context.Context, out io.Writer, network http.RoundTripper, urls ...string) error {
	began := time.Now()
	return fetch.Run(ctx, fetch.URLs(urls...), fetch.Options{
		PerHost:   weir.Per(1, time.Second),
		Total:     weir.Per(2, time.Second),
		Depth:     1,
		Transport: network,
		Page: func(_ context.Context, p *fetch.Page) error {
			for link, err := range p.Links() {
				if err != nil {
					return err
				}
				p.Follow(link)
			}
			return nil
		},
		Done: func(r fetch.Result) {
			line := fmt.Sprintf("%4.1f s  %-8s %s", r.Started.Sub(began).Seconds(), r.Outcome, r.URL)
			if r.Reason != "" {
				line += ": " + r.Reason
			}
			fmt.Fprintln(out, line)
		},
	})
}
