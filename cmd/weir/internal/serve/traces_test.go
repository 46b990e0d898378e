package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestADaemonSendsItsSpans(t *testing.T) {
	bodies := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer collector.Close()
	url := startDaemon(t, "--http", "127.0.0.1:0", "--otlp", collector.URL)
	r, _ := http.NewRequest(http.MethodPost, url+"/v1/take", strings.NewReader(`{"key":"alice"}`))
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	select {
	case body := <-bodies:
		for _, want := range []string{`"POST /v1/take"`, `"weir take"`, `"admitted"`, `"0af7651916cd43dd8448eb211c80319c"`} {
			if !strings.Contains(body, want) {
				t.Errorf("got %s, want …%s…", body, want)
			}
		}
	case <-time.After(patience):
		t.Error("no span has come")
	}
}
