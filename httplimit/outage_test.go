package httplimit_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

// A refusal because the engine is away is no refusal by a limit.
func TestAnOutageBehindAGuardIsA503(t *testing.T) {
	away := remote(weir.NewMemory(weir.MemoryOptions{}), func(context.Context, weir.Call, weir.Next) (weir.Answer, error) {
		return weir.Answer{}, errors.New("connection refused")
	})
	for policy, want := range map[layer.Policy][2]int{layer.Deny: {503, 503}, layer.Local: {200, 429}, layer.Allow: {200, 200}} {
		quiet := slog.New(slog.DiscardHandler)
		guard, err := layer.Guard(away, layer.GuardOptions{OnFailure: policy, Peers: 2, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer guard.Close()
		h := wrap(t, httplimit.Options{Engine: guard, Logger: quiet, Rules: []httplimit.Rule{{Limit: "2/h"}}},
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for i, status := range want {
			got := get(h, alice)
			wantStatus(t, policy.String(), got, status)
			if status == 503 && !strings.Contains(got.Body.String(), `"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"`) {
				t.Errorf("request %d under %s: got %s, want the problem of a reduced capacity", i+1, policy, got.Body)
			}
		}
	}
}
