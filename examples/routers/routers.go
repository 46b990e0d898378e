// Package routers shows limits with the standard mux and with chi: one for each client on all routes, and another for
// each tenant on some.
package routers

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirflow/weir/httplimit"
)

// limits makes both middlewares, once.
func limits() (perClient, perTenant func(http.Handler) http.Handler, err error) {
	if perClient, err = httplimit.PerClient("60/m and 1000/d"); err != nil {
		return nil, nil, err
	}
	perTenant, err = httplimit.PerKey("10/m", httplimit.PathValue("tenant"))
	return perClient, perTenant, err
}

// Standard returns a mux of net/http. A middleware around the mux limits all routes. One that needs a path value is
// around the handler of the route, because the mux finds the value.
func Standard() (http.Handler, error) {
	perClient, perTenant, err := limits()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", hello)
	mux.Handle("POST /v1/{tenant}/orders", perTenant(http.HandlerFunc(order)))
	return perClient(mux), nil
}

// Chi returns a router of chi. Use and With take the middlewares as they are.
func Chi() (http.Handler, error) {
	perClient, perTenant, err := limits()
	if err != nil {
		return nil, err
	}
	router := chi.NewRouter()
	router.Use(perClient)
	router.Get("/", hello)
	router.With(perTenant).Post("/v1/{tenant}/orders", order)
	return router, nil
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

func order(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "ordered by", r.PathValue("tenant"))
}
