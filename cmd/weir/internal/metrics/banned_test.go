package metrics

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

func bannedFor(key string, wait time.Duration) *layer.Observation {
	return &layer.Observation{Rule: "r", Key: key, Decision: weir.Decision{Cause: weir.ByBan, RetryAfter: wait}}
}

func keysOf(b *Banned) (keys string) {
	for _, k := range b.Keys(10) {
		keys += fmt.Sprintf("%s until %v ", k.Key, time.Until(time.UnixMilli(int64(k.Until*1000))).Round(time.Millisecond))
	}
	return keys
}

func TestBannedKeysAreListedUntilTheirBanEndsOrIsLifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Banned{}
		rule, err := weir.ParseRule("r=1/s and ban 1h after 5/m")
		if err != nil {
			t.Fatal(err)
		}
		for key, wait := range map[string]time.Duration{"short": time.Minute, "long": time.Hour, "reset": time.Hour, "admitted": time.Hour} {
			b.note(bannedFor(key, wait))
		}
		b.note(&layer.Observation{Rule: "r", Key: "fine", Decision: weir.Decision{Cause: weir.ByCount, RetryAfter: time.Hour}})
		b.Lift("r", "reset")
		b.note(&layer.Observation{Rule: "r", Key: "admitted", Decision: weir.Decision{Allowed: true}, Requests: []weir.Request{rule.For("admitted", 1)}})
		if got := keysOf(b); got != "long until 1h0m0s short until 1m0s " {
			t.Errorf("got %s", got)
		}
		time.Sleep(time.Minute)
		if got, counts := keysOf(b), b.counts(); got != "long until 59m0s " || counts["r"] != 1 {
			t.Errorf("a minute later: got %s, %v", got, counts)
		}
		b.forget("r")
		if got := keysOf(b); got != "" {
			t.Errorf("of a rule that is gone: got %s", got)
		}
	})
}

func TestTheListOfBannedKeysIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Banned{}
		for i := range 2 * mostBanned {
			b.note(bannedFor(strings.Repeat("k", 1000)+fmt.Sprint(i), time.Hour))
			b.note(bannedFor(fmt.Sprint(i), time.Hour))
		}
		if got := b.counts()["r"]; got != mostBanned {
			t.Errorf("got %d keys, want %d", got, mostBanned)
		}
		if k := b.Keys(mostBanned)[mostBanned-1]; len(k.Key) > 256 || !k.Cut {
			t.Errorf("got a key of %d bytes, cut %t", len(k.Key), k.Cut)
		}
		time.Sleep(time.Hour)
		b.note(bannedFor("new", time.Hour))
		if got := keysOf(b); got != "new until 1h0m0s " {
			t.Errorf("after all have ended: got %s", got)
		}
	})
}
