package fallback_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirflow/weir/examples/fallback"
	"github.com/weirflow/weir/internal/redistest"
)

func ask(h http.Handler, method, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code
}

// answers counts the statuses of n requests.
func answers(h http.Handler, n int, method, path string) map[int]int {
	counts := map[int]int{}
	for range n {
		counts[ask(h, method, path)]++
	}
	return counts
}

func TestTheAPIStaysUpAndLimitedWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	api, end, err := fallback.API("redis://" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	await(t, "orders while Redis is there", func() bool { return ask(api, "POST", "/orders") == http.StatusOK })
	server.Stop()
	if got := answers(api, 50, "GET", "/"); got[200] < 20 || got[200] > 22 || got[200]+got[429] != 50 {
		t.Errorf("50 readers without Redis: got %v, want the 20 of one of three replicas, and the rest refused", got)
	}
	if got := answers(api, 10, "POST", "/orders"); got[503] != 10 {
		t.Errorf("10 orders without Redis: got %v, want 503", got)
	}
	server.Cont()
	await(t, "orders when Redis is back", func() bool { return ask(api, "POST", "/orders") != http.StatusServiceUnavailable })
}

// await repeats a question for up to 20 seconds.
func await(t *testing.T, what string, asks func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !asks(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}
