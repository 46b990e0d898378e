package routers_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirflow/weir/examples/routers"
	"github.com/weirflow/weir/httplimit/httplimittest"
)

func TestBothRoutersLimitClientsAndTenants(t *testing.T) {
	for name, router := range map[string]func() (http.Handler, error){"net/http": routers.Standard, "chi": routers.Chi} {
		t.Run(name, func(t *testing.T) {
			h, err := router()
			if err != nil {
				t.Fatal(err)
			}
			order := func(client, tenant string) *http.Request {
				r := httptest.NewRequest("POST", "/v1/"+tenant+"/orders", nil)
				r.RemoteAddr = client + ":80"
				return r
			}
			httplimittest.Admits(t, h, order("192.0.2.1", "acme"), 10) // the tenant's limit
			httplimittest.Admits(t, h, order("192.0.2.2", "tiny"), 10)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, order("192.0.2.3", "acme"))
			if w.Code != http.StatusTooManyRequests {
				t.Errorf("a tenant whose limit is used up, from another client: %d, want 429", w.Code)
			}
			page := httptest.NewRequest("GET", "/", nil)
			page.RemoteAddr = "192.0.2.4:80"
			httplimittest.Admits(t, h, page, 60) // the client's limit
		})
	}
}
