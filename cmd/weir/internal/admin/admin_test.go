package admin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// A change leaves a line also when the engine fails before its outcome is known. One that was certainly not made leaves none.
func TestAChangeOfUnknownOutcomeIsInTheLog(t *testing.T) {
	rule, err := weir.ParseRule("login=5/m")
	if err != nil {
		t.Fatal(err)
	}
	fails := map[weir.Op]error{}
	memory, peeks := weir.NewMemory(weir.MemoryOptions{}), 0
	engine := weir.Wrap(memory, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		if call.Op == weir.OpPeek {
			if peeks++; peeks%2 == 1 { // the one before the change
				return next(ctx, call)
			}
		}
		if err := fails[call.Op]; err != nil {
			return weir.Answer{}, err
		}
		return next(ctx, call)
	})
	gone := errors.New("connection lost")
	for _, c := range []struct {
		op   weir.Op
		err  error
		want string
	}{
		{weir.OpPeek, gone, `after="\"unknown\""`},
		{weir.OpReset, gone, `after="\"unknown\""`},
		{weir.OpReset, weir.ErrRequest, ""},
	} {
		peeks, fails = 0, map[weir.Op]error{c.op: c.err}
		var log bytes.Buffer
		h := New(Options{Engine: engine, Overrides: new(override.Table), Rules: func() ([]*weir.Rule, *rules.Config) { return []*weir.Rule{rule}, nil }, Log: slog.New(slog.NewTextHandler(&log, nil))})
		r := httptest.NewRequest(http.MethodPost, "/v1/admin/reset", strings.NewReader(`{"rule":"login","key":"alice"}`))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext((&auth.Port{Open: auth.Anyone("ops", auth.Admin)}).Mark(r.Context())))
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(log.String(), c.want) || (c.want == "") != (log.Len() == 0) {
			t.Errorf("%v fails with %v: got %d %s and the log %q, want %q", c.op, c.err, w.Code, w.Body, &log, c.want)
		}
	}
}

// Rules and sums are for whoever watches; keys, and changes, are for the scope admin.
func TestAWatcherSeesTheRulesWithoutTheirKeysAndChangesNothing(t *testing.T) {
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte("rules:\n  - {name: api, match: any, key: client, limit: 9/m, keys: {192.0.2.1: 5/m}}\n")})
	if err != nil {
		t.Fatal(err)
	}
	h := New(Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: func() ([]*weir.Rule, *rules.Config) { return config.Named(), config }, Log: slog.New(slog.DiscardHandler)})
	ask := func(scope auth.Scope, method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(`{"rule":"api","key":"a"}`))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext((&auth.Port{Open: auth.Anyone("ops", scope)}).Mark(r.Context())))
		return w
	}
	for scope, want := range map[auth.Scope][2]bool{auth.Metrics: {true, false}, auth.Admin: {true, true}, auth.Take: {false, false}} {
		got := ask(scope, http.MethodGet, "/v1/admin/rules").Body.String()
		if shows := [2]bool{strings.Contains(got, "9/m"), strings.Contains(got, "192.0.2.1")}; shows != want {
			t.Errorf("the scope %s sees the rules and their keys: %v, want %v: %s", scope, shows, want, got)
		}
	}
	for _, c := range []string{"GET /v1/admin/overrides", "POST /v1/admin/override", "POST /v1/admin/remove", "POST /v1/admin/grant", "POST /v1/admin/reset", "POST /v1/admin/explain",
		"POST /v1/admin/snapshot", "POST /v1/admin/drain", "GET /v1/admin/nosuch"} {
		method, path, _ := strings.Cut(c, " ")
		if w := ask(auth.Metrics, method, path); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "this needs the scope admin, and the caller has metrics") {
			t.Errorf("%s with the scope metrics: got %d %s, want 403", c, w.Code, w.Body)
		}
	}
}
