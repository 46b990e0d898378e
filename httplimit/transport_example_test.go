package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weirflow/weir/httplimit"
)

// The server admits two requests in any second. The client learns that from the first answer.
func ExampleNewTransport() {
	limited, err := httplimit.PerKey("sliding log 2/s", httplimit.Everyone)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(limited(http.HandlerFunc(hello)))
	defer server.Close()

	transport, err := httplimit.NewTransport(httplimit.TransportOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	for range 3 {
		resp, err := client.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	held := transport.Stats().Delayed[httplimit.ReasonQuota]
	fmt.Println("held back:", held.Requests, "request")
	// Output:
	// 200
	// 200
	// 200
	// held back: 1 request
}
