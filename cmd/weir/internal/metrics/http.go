package metrics

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests counts HTTP requests.
type requests struct {
	counts    *prometheus.CounterVec
	durations *prometheus.HistogramVec
	paths     *sync.Map // *pathSeries, by path
	since     time.Time
}

// pathSeries are the values of a path, looked up once.
type pathSeries struct {
	ok   prometheus.Counter // of status 200
	took prometheus.Observer
}

func newRequests() requests {
	return requests{
		counts: counters("weir_http_requests_total", "HTTP requests, by path and status.", "path", "code"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_http_request_duration_seconds",
			Help: "Duration of HTTP requests until the answer is written, with the wait of those that wait.", Buckets: prometheus.ExponentialBuckets(16e-6, 4, 12)}, []string{"path"}),
		paths: &sync.Map{},
		since: time.Now(),
	}
}

// otherPath is the label of paths that the daemon does not serve.
const otherPath = "other"

// HTTP counts the requests of a handler. known reports whether a path is one of the few that it serves.
func (m *Metrics) HTTP(next http.Handler, known func(path string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if !known(path) {
			path = otherPath
		}
		began, seen := time.Since(m.http.since), &statusWriter{ResponseWriter: w, status: http.StatusOK} // a duration costs half of a time
		defer func() {                                                                                   // also of a handler that panics to cut the connection
			m.http.count(path, seen.status, time.Since(m.http.since)-began)
		}()
		next.ServeHTTP(seen, r)
	})
}

func (q *requests) count(path string, status int, took time.Duration) {
	s, known := q.paths.Load(path)
	if !known {
		s, _ = q.paths.LoadOrStore(path, &pathSeries{q.counts.WithLabelValues(path, "200"), q.durations.WithLabelValues(path)})
	}
	series := s.(*pathSeries)
	if series.took.Observe(took.Seconds()); status == http.StatusOK {
		series.ok.Inc()
		return
	}
	q.counts.WithLabelValues(path, strconv.Itoa(status)).Inc()
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (a *statusWriter) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer below, for http.ResponseController.
func (a *statusWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}
