package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWithoutRoomOnlyHealthIsAnswered(t *testing.T) {
	f := newFixture(t, usual)
	ask := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(`{"key":"a"}`))
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r.WithContext(WithoutRoom(r.Context())))
		if got := w.Header().Get("Connection"); got != "close" {
			t.Errorf("%s: Connection is %q, want close", path, got)
		}
		return w
	}
	for method, path := range map[string]string{http.MethodPost: "/v1/take", http.MethodGet: "/readyz"} {
		w := ask(method, path)
		checkProblem(t, path, w, fault{status: http.StatusServiceUnavailable, detail: "too many connections; nothing was admitted; ask again, or reuse an open connection"})
		if got := w.Header().Get("Retry-After"); got != "1" {
			t.Errorf("%s: Retry-After is %q, want 1", path, got)
		}
	}
	if w := ask(http.MethodGet, "/healthz"); w.Code != http.StatusOK {
		t.Errorf("/healthz: got %d %s, want 200: the process is alive", w.Code, w.Body)
	}
	if got := post(f, "/v1/peek", `{"key":"a"}`).Body.String(); !strings.Contains(got, `"remaining":20,`) {
		t.Errorf("a request without room was decided: %s", got)
	}
}
