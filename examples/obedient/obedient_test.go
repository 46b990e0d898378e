package obedient_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/examples/obedient"
)

// wire carries requests to a handler in memory, up to 10 ms each way.
type wire struct {
	handler http.Handler
	refused atomic.Int64
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(rand.N(10 * time.Millisecond))
	recorder := httptest.NewRecorder()
	arrived := r.Clone(r.Context())
	arrived.RemoteAddr = "192.0.2.1:1234"
	w.handler.ServeHTTP(recorder, arrived)
	if recorder.Code == http.StatusTooManyRequests {
		w.refused.Add(1)
	}
	time.Sleep(rand.N(10 * time.Millisecond))
	resp := recorder.Result()
	resp.Request = r
	return resp, nil
}

// The server admits the first 100 at once and each further 100 ten seconds later, so 1,000 requests take 90 s at least.
func TestAThousandRequestsPassInTheShortestTimeWithoutARefusal(t *testing.T) {
	for limit, shortest := range map[string]time.Duration{
		"sliding log 100/10s":         90 * time.Second,
		"token bucket 10/s burst 100": 90 * time.Second,
	} {
		t.Run(limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, err := obedient.Server(limit)
				if err != nil {
					t.Fatal(err)
				}
				w := &wire{handler: handler}
				report, err := obedient.Get(t.Context(), w, "http://api.example/", 1000, nil)
				if err != nil || report.Answers != 1000 || report.Refused != 0 || w.refused.Load() != 0 {
					t.Fatalf("%v, %v, and the server refused %d; want 1000 answers and no refusal", report, err, w.refused.Load())
				}
				if longest := shortest + shortest/20; report.Took < shortest || report.Took > longest {
					t.Errorf("%s takes %v, want %v to %v", limit, report.Took, shortest, longest)
				}
				t.Log(report)
			})
		})
	}
}

// On real sockets, with a tenth of the time and of the requests.
func TestOnRealSocketsNoRequestIsRefused(t *testing.T) {
	handler, err := obedient.Server("sliding log 20/1s")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	hundreds := 0
	report, err := obedient.Get(t.Context(), server.Client().Transport, server.URL, 100, func(obedient.Report) { hundreds++ })
	if err != nil || report.Answers != 100 || report.Refused != 0 || hundreds != 1 {
		t.Fatalf("%v, %v and %d calls of progress, want 100 answers, no refusal, and one call", report, err, hundreds)
	}
	if report.Took < 4*time.Second {
		t.Errorf("100 requests took %v, and the limit allows no less than 4s", report.Took)
	}
	t.Log(report)
}
