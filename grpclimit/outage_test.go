package grpclimit_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/grpclimit"
	"github.com/weirflow/weir/layer"
)

// A refusal because the engine is away is no refusal by a limit.
func TestAnOutageFollowsThePolicyOfTheGuard(t *testing.T) {
	away := remote(weir.NewMemory(weir.MemoryOptions{}), func(context.Context, weir.Call, weir.Next) (weir.Answer, error) {
		return weir.Answer{}, errors.New("connection refused")
	})
	for policy, want := range map[layer.Policy][2]codes.Code{
		layer.Deny: {codes.Unavailable, codes.Unavailable}, layer.Local: {codes.OK, codes.ResourceExhausted}, layer.Allow: {codes.OK, codes.OK},
	} {
		limited := newServer(t, grpclimit.Options{Engine: away, Guard: layer.GuardOptions{OnFailure: policy, Peers: 2},
			Logger: slog.New(slog.DiscardHandler), Rules: []grpclimit.Rule{{Limit: "client=2/h"}}})
		for _, code := range want {
			wantCode(t, policy.String(), callDirectly(t.Context(), limited, func() {}), code)
		}
	}
}
