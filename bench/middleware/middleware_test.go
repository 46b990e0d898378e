package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/httplimit"
)

func TestAShortRunMeasuresEveryRow(t *testing.T) {
	list, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	if err := measure(list, 1, time.Millisecond, func(string) {}); err != nil {
		t.Fatal(err)
	}
	text := report(list, 1, time.Second)
	for _, s := range list {
		if s.windows == 0 || !strings.Contains(text, "| "+s.name+" |") {
			t.Errorf("%s was measured in %d windows, and the report says:\n%s", s.name, s.windows, text)
		}
	}
	if got := strings.Count(text, "reached") + strings.Count(text, "**missed**"); got != 10 {
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
