package api

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/layer"
)

func TestReadinessAsksForTheEngineOnlyIfTold(t *testing.T) {
	fails := ""
	api := newAPIWith(t, decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Fails: func() string { return fails }}, usual)
	for _, path := range []string{"/readyz", "/readyz?engine=0", "/readyz?engine=1"} {
		if w := get(api, path); w.Code != http.StatusOK {
			t.Errorf("%s with an engine that is never away: got %d %s, want 200", path, w.Code, w.Body)
		}
	}
	fails = "the engine has failed for 5s: its server is gone"
	for _, path := range []string{"/readyz", "/readyz?engine=0", "/healthz"} {
		if w := get(api, path); w.Code != http.StatusOK {
			t.Errorf("%s while policies answer: got %d %s, want 200", path, w.Code, w.Body)
		}
	}
	checkProblem(t, "the engine fails", get(api, "/readyz?engine=1"), fault{status: http.StatusServiceUnavailable, detail: fails})
	for _, path := range []string{"/readyz?engine=yes", "/readyz?engine", "/readyz?engine=1&engine=0"} {
		if w := get(api, path); w.Code != http.StatusBadRequest {
			t.Errorf("%s: got %d %s, want 400", path, w.Code, w.Body)
		}
	}
}

// The guard says when the engine goes and comes back.
func TestDecisionsThatAnOutageFailsAreNotLogged(t *testing.T) {
	var log strings.Builder
	fails := ""
	api := newAPIWith(t, decide.Options{Engine: undecided(&layer.OutageError{Op: weir.OpTake}), Log: slog.New(slog.NewTextHandler(&log, nil)), Fails: func() string { return fails }}, usual)
	if w := post(api, "/v1/take", `{"key":"a"}`); w.Code != http.StatusServiceUnavailable || log.Len() > 0 {
		t.Errorf("got %d and the log %q, want 503 and none", w.Code, &log)
	}
	api.desk.Failed(t.Context(), &layer.OutageError{Op: weir.OpTake})
	fails = "the engine has failed for 5s"
	api.desk.Failed(t.Context(), errors.New("the secret of reservations is in Redis, too"))
	if log.Len() > 0 {
		t.Errorf("the log says %q of an answer of another server, want nothing", &log)
	}
}
