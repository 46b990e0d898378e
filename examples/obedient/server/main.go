// Command server admits 100 requests in any 10 seconds, or the limit in its argument: see package obedient.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/weirflow/weir/examples/obedient"
)

const address = "127.0.0.1:8081"

func main() {
	limit := "sliding log 100/10s"
	if len(os.Args) > 1 {
		limit = os.Args[1]
	}
	if err := serve(limit); err != nil {
		fmt.Fprintf(os.Stderr, "server: %v\nusage: server [LIMIT], such as 'token bucket 10/s burst 100'\n", err)
		os.Exit(1)
	}
}

func serve(limit string) error {
	handler, err := obedient.Server(limit)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("%s on http://%s/\n", limit, address)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}
