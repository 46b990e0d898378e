package fetch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

func ExampleRun() {
	ctx := context.Background()
	began := time.Now()
	err := fetch.Run(ctx, fetch.URLs("https://example.com/", "https://example.org/"), fetch.Options{
		PerHost: weir.PerSecond(1),
		Total:   weir.PerSecond(2),
		Depth:   1,
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
			fmt.Printf("%4.1f s  %-8s %s\n", r.Started.Sub(began).Seconds(), r.Outcome, r.URL)
		},
	})
	if err != nil {
		fmt.Println(err)
	}
}
