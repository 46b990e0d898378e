package httplimit_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

// An API key does not reach the engine, equal ones share a limit, and a request without one still has none.
func TestHashedKeepsTheValueOutOfTheEngine(t *testing.T) {
	const secret = "example-api-key-7f3a91d2"
	memory := weir.NewMemory(weir.MemoryOptions{})
	var keys []string
	engine := weir.Wrap(memory, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		for _, q := range c.Requests {
			keys = append(keys, q.Key)
		}
		return next(ctx, c)
	})
	h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{
		{Limit: "key=2/m", Key: httplimit.Hashed(httplimit.Header("X-Api-Key")), Missing: httplimit.MissingRefused},
	}}, ok)
	for i, status := range []int{200, 200, 429} {
		wantStatus(t, "the key", get(h, alice, "X-Api-Key", secret), status)
		wantStatus(t, "another key", get(h, alice, "X-Api-Key", secret+"e"), status)
		wantStatus(t, "no key", get(h, alice), 400)
		if len(keys) != 2*i+2 {
			t.Fatalf("the engine was asked for %q, want two keys a round", keys)
		}
	}
	if all := strings.Join(keys, " "); strings.Contains(all, secret) || keys[0] != "342690ed64c1e6d291811d6a1135e09d" {
		t.Errorf("the engine got %q", keys)
	}
}
