// Command crawler fetches the URLs of its arguments and the pages that they link to on the same site, politely, and
// prints when it asked for each.
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
	if err := crawl(context.Background(), os.Stdout, fetch.NewTransport(false), os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
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
			fmt.Fprintf(out, "%4.1f s  %-8s %s\n", r.Started.Sub(began).Seconds(), r.Outcome, r.URL)
		},
	})
}
