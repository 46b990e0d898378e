package api

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/httplimit"
)

// A caller that may not ask for a rule must not use up its trial either, nor be counted in what the trial would refuse.
func TestShadowsOutsideTheScopeOfACallerAreNotAsked(t *testing.T) {
	identities, err := auth.Parse("web sha256:" + strings.Repeat("ab", 32) + " take:login")
	if err != nil {
		t.Fatal(err)
	}
	const file = `rules:
  - {name: login, limit: 5/m, match: {path: /login}, candidate: 9/m}
  - {name: trial, limit: 5/d, shadow: true, match: any}
`
	for _, all := range []bool{true, false} {
		for path, want := range map[string]string{"/login": "login~candidate", "/other": ""} {
			synctest.Test(t, func(t *testing.T) {
				var tried []string
				a := newConfiguredWith(t, file, decide.Options{Compared: func(name string, _, _ weir.Decision, _ error) { tried = append(tried, name) }})
				gateways, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}})
				if err != nil {
					t.Fatal(err)
				}
				a.Check.Gateways = gateways
				a.Who = func(*http.Request) *auth.Identity {
					if all {
						return auth.Anyone("anyone", auth.Local)
					}
					return identities[0]
				}
				if w := post(a, takePath, `{"attributes":{"path":"`+path+`"}}`); w.Code != http.StatusOK {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
				synctest.Wait()
				wanted := strings.Fields(want)
				if all {
					wanted = append(wanted, "trial")
				}
				if len(tried) != len(wanted) || !strings.HasPrefix(strings.Join(tried, " ")+" ", want) {
					t.Errorf("%s, every scope %v: tried %q, want %q", path, all, tried, wanted)
				}
				tried = nil
				status, _, _ := forward(a, "GET", path, "example.org", "192.0.2.1")
				synctest.Wait()
				if status != http.StatusNoContent || len(tried) != len(wanted) {
					t.Errorf("a check of %s, every scope %v: got %d and tried %q, want 204 and %q", path, all, status, tried, wanted)
				}
			})
		}
	}
}
