package redislimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// acrossReplicas limits clients across three replicas. While Redis is away, even at the start, each replica admits its third.
func acrossReplicas(url string) (func(http.Handler) http.Handler, error) {
	engine, err := redislimit.Open(url, redislimit.Options{ConnectLater: true})
	if err != nil {
		return nil, err
	}
	return httplimit.New(httplimit.Options{
		Engine: engine,
		Guard:  layer.GuardOptions{OnFailure: layer.Local, Peers: 3},
		Rules:  []httplimit.Rule{{Limit: "hello=60/m"}},
	})
}

// A third of 60/m refills a unit each 3 s. So a slow machine may admit a few more than 20 of 60 requests, and never all.
func TestAReplicaThatStartsWithoutRedisAdmitsItsThird(t *testing.T) {
	limited, err := acrossReplicas("redis://127.0.0.1:1") // where no Redis is
	if err != nil {
		t.Fatal(err)
	}
	api := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	codes := make(map[int]int)
	for range 60 {
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		codes[answer.Code]++
	}
	if admitted := codes[http.StatusOK]; admitted < 20 || admitted > 40 || admitted+codes[http.StatusTooManyRequests] != 60 {
		t.Errorf("60 requests without Redis got these codes, so often: %v; want 20 admitted, the others refused with 429", codes)
	}
}
