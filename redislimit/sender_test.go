package redislimit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// rueidisSender hides a rueidis client behind the one method of a Sender.
type rueidisSender struct{ client rueidis.Client }

func (s rueidisSender) Send(ctx context.Context, command ...string) (string, error) {
	return s.client.Do(ctx, s.client.B().Arbitrary(command...).Build()).ToString()
}

// cutSender loses every answer.
type cutSender struct{}

func (cutSender) Send(context.Context, ...string) (string, error) { return "", errors.New("cut") }

func TestAClientOfOneMethodIsEnough(t *testing.T) {
	server := redistest.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	engine, err := NewWith(rueidisSender{client}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := weir.ParseRule("r=token bucket 5/h burst 5 and sliding log 4/h")
	if err != nil {
		t.Fatal(err)
	}
	for left := int64(3); left >= 0; left-- {
		if d, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed || d.Remaining != left {
			t.Errorf("Take: %+v and %v, want %d remaining", d, err, left)
		}
		server.FlushScripts() // it is sent again
	}
	if d, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil || d.Allowed {
		t.Errorf("the fifth Take: %+v and %v, want it refused", d, err)
	}
	server.Do("CONFIG", "SET", "maxmemory", "100mb")
	server.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) != 1 {
		t.Errorf("Warnings = %q, %v, want one", warnings, err)
	}
	server.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	_, err = engine.Take(t.Context(), rule.For("other", 1))
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Reason != ReadOnly || failed.Counted != weir.CountedNo {
		t.Errorf("Take of a server that refuses: %v, want it read only and uncounted", err)
	}
}

func TestALostAnswerOfAnyClientMayHaveBeenCounted(t *testing.T) {
	engine, err := NewWith(cutSender{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := weir.ParseRule("r=token bucket 5/h burst 5")
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.Take(t.Context(), rule.For("k", 1))
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Reason != Lost || failed.Counted == weir.CountedNo {
		t.Errorf("Take: %v, want it lost, and perhaps counted", err)
	}
}

// shardingSender is a proxy that sends each call to the server of its first key, by the hash tag.
type shardingSender []rueidisSender

func (shards shardingSender) Send(ctx context.Context, command ...string) (string, error) {
	if len(command) < 4 {
		return shards[0].Send(ctx, command...)
	}
	_, tag, _ := strings.Cut(command[3], "{")
	tag, _, _ = strings.Cut(tag, "}")
	lane, err := strconv.Atoi(tag)
	if err != nil {
		return "", err
	}
	return shards[lane%len(shards)].Send(ctx, command...)
}

func TestAProxyThatScattersKeysIsWarnedOf(t *testing.T) {
	var shards shardingSender
	for range 2 {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr}, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		shards = append(shards, rueidisSender{client})
	}
	for _, oneSlot := range []bool{false, true} {
		engine, err := NewWith(shards, Options{OneSlot: oneSlot})
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := engine.Warnings(t.Context())
		if got := strings.Join(warnings, "\n"); err != nil || strings.Contains(got, "scatters the keys") == oneSlot || len(warnings) > 1 {
			t.Errorf("OneSlot %t: Warnings = %q, %v, want one of scattered keys unless it is set", oneSlot, warnings, err)
		}
		rule, err := weir.ParseRule("r=fixed window 10/300d")
		if err != nil {
			t.Fatal(err)
		}
		// From now on each key is on the server that the proxy reads it from.
		key := fmt.Sprint("oneSlot", oneSlot)
		for i := range int64(10) {
			if d, err := engine.Take(t.Context(), rule.For(key, 1), rule.For(fmt.Sprint(key, i), 1)); err != nil || !d.Allowed {
				t.Errorf("Take %d: %+v, %v", i, d, err)
			}
		}
		if d, err := engine.Take(t.Context(), rule.For("other"+key, 1), rule.For(key, 1)); err != nil || d.Allowed {
			t.Errorf("Take of a spent key behind another: %+v and %v, want it refused", d, err)
		}
	}
}
