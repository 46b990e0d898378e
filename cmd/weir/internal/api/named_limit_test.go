package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/layer"
)

// The limit beside the rule of a refusal is that of the rule, also if another rule of the call has less left.
func TestTheLimitBesideANamedRuleIsItsOwn(t *testing.T) {
	a := newAPI(t, weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }}), "wide=100/h", "narrow=5/h", "both=token bucket 100/h and fixed window 7/d")
	for body, want := range map[string]string{
		`{"requests":[{"rule":"wide","key":"k","cost":101},{"rule":"narrow","key":"k"}]}`:        `"rule":"wide","key":"k","limit":100,"remaining":5,`,
		`{"requests":[{"rule":"wide","key":"k"},{"rule":"narrow","key":"k","cost":6}]}`:          `"rule":"narrow","key":"k","limit":5,"remaining":5,`,
		`{"rule":"both","key":"k","cost":101}`:                                                   `"rule":"both","key":"k","limit":100,"remaining":7,`,
		`{"rule":"both","key":"k","cost":8}`:                                                     `"rule":"both","key":"k","limit":7,"remaining":7,`,
		`{"requests":[{"rule":"wide","key":"k","cost":0},{"rule":"narrow","key":"k","cost":0}]}`: `"rule":"narrow","key":"k","limit":5,"remaining":5,`,
	} {
		if got := post(a, "/v1/peek", body).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s in it", body, got, want)
		}
	}
}

// Where a policy answers in place of the engine, or a rule has no limit, an answer names none.
func TestNoLimitIsAbsent(t *testing.T) {
	away := weir.Kit.EngineOf(func(context.Context, weir.Call) (weir.Answer, error) {
		return weir.Answer{}, errors.New("connection refused")
	}, func(...*weir.Rule) error { return nil })
	guard, err := layer.Guard(away, layer.GuardOptions{Logger: slog.New(slog.DiscardHandler), OnFailure: layer.Allow})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	for name, engine := range map[string]weir.Engine{"away": guard, "unlimited": weir.NewMemory(weir.MemoryOptions{})} {
		a := newAPI(t, engine, "default=unlimited")
		for _, path := range []string{"/v1/take", "/v1/peek", "/v1/wait", "/v1/reserve"} {
			if got := post(a, path, `{"key":"k"}`).Body.String(); !strings.Contains(got, `"allowed":true,"rule":"default","key":"k","retry_after":0,`) {
				t.Errorf("%s of an engine that is %s: got %s, want neither limit nor remaining", path, name, got)
			}
		}
	}
}

// A caller that lacks a scope is told which it has and which it needs, as the file of tokens names them.
func TestARefusedTokenNamesItsScopes(t *testing.T) {
	var scopes []string
	for i := range 10 {
		scopes = append(scopes, fmt.Sprintf("take:svc%02d", i))
	}
	for given, want := range map[string]string{
		"take:svc03":                `this needs the scope take:svc04, and the caller has take:svc03"`,
		"take:svc03 refund metrics": `this needs the scope take:svc04, and the caller has refund, metrics, take:svc03"`,
		"refund:svc04 take:svc03":   `this needs the scope take:svc04, and the caller has take:svc03, refund:svc04"`,
		strings.Join(slices.Concat(scopes[:4], scopes[5:]), " "): `and the caller has take:svc00, take:svc01, take:svc02, take:svc03, take:svc05, take:svc06, take:svc07, take:svc08 and 1 more"`,
	} {
		identities, err := auth.Parse("shop sha256:" + strings.Repeat("ab", 32) + " " + given)
		if err != nil {
			t.Fatal(err)
		}
		a := newAPI(t, weir.NewMemory(weir.MemoryOptions{}), "svc03=5/m", "svc04=5/m")
		a.Who = func(*http.Request) *auth.Identity { return identities[0] }
		if w := post(a, "/v1/take", `{"rule":"svc04","key":"k"}`); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), want) {
			t.Errorf("with %s: got %d %s, want %s", given, w.Code, w.Body, want)
		}
	}
}

// Shadows and candidates count a record by attributes as they count a take.
func TestARecordByAttributesCountsBesideToo(t *testing.T) {
	compared := make(chan string, 10)
	a := newConfiguredWith(t, `rules:
  - {name: spent, match: {path: /}, key: client, limit: 10/h, candidate: 5/h}
  - {name: tried, match: {path: /}, key: client, limit: 5/h, shadow: true}
`, decide.Options{Compared: func(name string, _, beside weir.Decision, err error) {
		compared <- fmt.Sprint(name, " ", beside.Remaining, " ", err)
	}})
	if got := post(a, "/v1/record", `{"attributes":{"path":"/","client":"192.0.2.1"},"cost":3}`).Body.String(); !strings.Contains(got, `"rule":"spent","key":"192.0.2.1","limit":10,"remaining":7,`) {
		t.Fatalf("got %s, want 7 of 10 left", got)
	}
	got := []string{<-compared, <-compared}
	slices.Sort(got)
	if want := []string{"spent~candidate 2 <nil>", "tried 2 <nil>"}; !slices.Equal(got, want) {
		t.Errorf("beside: got %q, want %q", got, want)
	}
}
