// Package fallback shows an API on three replicas that share limits in Redis, and stays up and limited without it.
package fallback

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// replicas is how many processes serve the API.
const replicas = 3

// API returns a handler, and a function that ends its work. While Redis is away, each replica admits its third of the
// readers' limit, and orders are refused with 503.
func API(redis string) (api http.Handler, end func(), err error) {
	shared, err := redislimit.Open(redis, redislimit.Options{ConnectLater: true})
	if err != nil {
		return nil, nil, err
	}
	engine, stop, err := layer.ForNetwork(shared, layer.NetworkOptions{Guard: layer.GuardOptions{
		OnFailure: layer.Local, Peers: replicas, Rules: map[string]layer.Policy{"orders": layer.Deny},
	}})
	if err != nil {
		return nil, nil, err
	}
	end = func() { stop(); shared.Close() }
	limited := func(limit string) func(http.Handler) http.Handler {
		var made func(http.Handler) http.Handler
		if err == nil {
			made, err = httplimit.New(httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Limit: limit}}})
		}
		return made
	}
	reads, orders := limited("reads=60/m"), limited("orders=fixed window 10/m")
	if err != nil {
		return nil, end, err
	}
	router := chi.NewRouter()
	router.With(reads).Get("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	router.With(orders).Post("/orders", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ordered") })
	return router, end, nil
}
