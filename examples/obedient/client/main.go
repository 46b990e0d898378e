// Command client gets a URL 1,000 times, as fast as the server's limits allow: see package obedient.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"

	"github.com/weirflow/weir/examples/obedient"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client URL\nStart the server first: go run ./examples/obedient/server")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 100 // instead of a new connection for most requests
	report, err := obedient.Get(ctx, base, os.Args[1], 1000, func(r obedient.Report) { fmt.Println(r) })
	if err != nil {
		fmt.Fprintf(os.Stderr, "client: %v\nIs the server running? Start it with: go run ./examples/obedient/server\n", err)
		os.Exit(1)
	}
	fmt.Println("done:", report)
}
