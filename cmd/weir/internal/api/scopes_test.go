package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// open are the paths that need no scope.
var open = map[string]bool{"/openapi.json": true, "/healthz": true, "/readyz": true}

// needed are the scopes of the other paths, as docs/howto/machines.md has them.
var needed = map[string]auth.Scope{
	"/v1/take": auth.Take, "/v1/peek": auth.Peek, "/v1/token": auth.Read, "/v1/record": auth.Take, "/v1/wait": auth.Take, "/v1/reserve": auth.Take, "/v1/settle": auth.Take,
	"/v1/renew": auth.Take, "/v1/check": auth.Take, "/v1/return": auth.Refund, "/v1/reset": auth.Admin, "/v1/stats": auth.Metrics,
}

var allScopes = []auth.Scope{auth.Take, auth.Dynamic, auth.Refund, auth.Admin, auth.Metrics, auth.Read}

// Every path is open or needs one scope, and no other scope lets a caller in.
func TestEveryPathNeedsItsScope(t *testing.T) {
	for path, route := range routes {
		if open[path] == (needed[path] != 0) {
			t.Errorf("%s is not in one of the tables of scopes and of open paths", path)
		}
		for _, has := range append(allScopes, 0) {
			a := newAPI(t, weir.NewMemory(weir.MemoryOptions{}), usual)
			a.Who = func(*http.Request) *auth.Identity { return auth.Anyone("test", has) }
			w := httptest.NewRecorder()
			a.ServeHTTP(w, httptest.NewRequest(route.methods[0], path, strings.NewReader(`{"key":"alice"}`)))
			refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
			if want := !open[path] && needed[path]&has == 0; refused != want {
				t.Errorf("%s with scope %q: got %d %s, want refused: %v", path, has, w.Code, w.Body, want)
			}
			if w.Code == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s: 401 without WWW-Authenticate", path)
			}
		}
	}
}

// A scope for one rule lets in for this rule alone, however a request names rules.
func TestAScopeOfARuleIsForThatRuleAlone(t *testing.T) {
	identities, err := auth.Parse("shop sha256:" + strings.Repeat("ab", 32) + " take:mine refund:mine admin:mine")
	if err != nil {
		t.Fatal(err)
	}
	a := newAPI(t, weir.NewMemory(weir.MemoryOptions{}), "mine=5/m", "other=5/m")
	a.Who = func(*http.Request) *auth.Identity { return identities[0] }
	for path := range needed {
		if path == "/v1/token" || path == "/v1/stats" || path == "/v1/settle" || path == "/v1/renew" || path == "/v1/check" {
			continue
		}
		for body, want := range map[string]bool{
			`{"rule":"mine","key":"k"}`: true, `{"rule":"other","key":"k"}`: false,
			`{"requests":[{"rule":"mine","key":"k"},{"rule":"other","key":"k"}]}`: false,
		} {
			if w := post(a, path, body); (w.Code == http.StatusOK) != want || !want && w.Code != http.StatusForbidden {
				t.Errorf("%s %s: got %d %s, want admitted: %v", path, body, w.Code, w.Body, want)
			}
		}
	}
	if w := post(a, takePath, `{"decisions":[{"rule":"mine","key":"k"},{"rule":"other","key":"k"}]}`); w.Code != http.StatusForbidden {
		t.Errorf("decisions of both rules: got %d %s", w.Code, w.Body)
	}
	for rule, want := range map[string]int{"mine": http.StatusNoContent, "other": http.StatusForbidden} {
		if w := get(a, fmt.Sprintf("/v1/check?rule=%s&key=fresh", rule)); w.Code != want {
			t.Errorf("/v1/check of %s: got %d %s, want %d", rule, w.Code, w.Body, want)
		}
	}
	for path, body := range map[string]string{"/v1/settle": `{"token":%q,"cost":0}`, "/v1/renew": `{"token":%q}`} {
		a.Who = func(*http.Request) *auth.Identity { return auth.Anyone("another caller", auth.All) }
		var reserved struct{ Token string }
		if err := json.Unmarshal(post(a, "/v1/reserve", `{"rule":"other","key":"k"}`).Body.Bytes(), &reserved); err != nil || reserved.Token == "" {
			t.Fatalf("got no token, and %v", err)
		}
		a.Who = func(*http.Request) *auth.Identity { return identities[0] }
		if w := post(a, path, fmt.Sprintf(body, reserved.Token)); w.Code != http.StatusForbidden {
			t.Errorf("%s with the token of a reservation of others: got %d %s", path, w.Code, w.Body)
		}
	}
	if w := get(a, "/v1/stats"); w.Code != http.StatusForbidden {
		t.Errorf("/v1/stats: got %d", w.Code)
	}
}
