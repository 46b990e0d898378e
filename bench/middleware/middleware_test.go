package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/httplimit"
)

func TestAShortRunMeasuresEveryRow(t *testing.T) {
	out := filepath.Join(t.TempDir(), "report")
	if err := bench.Run(t.Context(), []string{"-reps", "1", "-window", "1ms", "-o", out}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), "| reached |") + strings.Count(string(text), "| **missed** |"); got != 10 {
		t.Errorf("%d verdicts, want 10:\n%s", got, text)
	}
}

func TestAPeerThatDoesNotLimitIsNoticed(t *testing.T) {
	admitsAll := peer{"all", nil, peers[0].make}
	if _, err := newSubject(admitsAll, requests()); err == nil {
		t.Error("a middleware that admits everything is measured")
	}
	noFields := peer{"none", xRateLimit, weir(httplimit.NoHeaders)}
	if _, err := newSubject(noFields, requests()); err == nil || !strings.Contains(err.Error(), "X-Ratelimit-") {
		t.Errorf("a middleware without its fields: %v, want an error that names one", err)
	}
	oneBudget := peer{"one", nil, func(int) (middleware, error) {
		admitted := false
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !admitted {
					next.ServeHTTP(w, r)
				}
				admitted = true
			})
		}, nil
	}}
	if _, err := newSubject(oneBudget, requests()); err == nil {
		t.Error("a middleware with one budget for all clients is measured")
	}
}
