package metrics

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/layer"
)

// Banned are the keys that this daemon has refused because of a ban that has not ended: on a shared engine, others may have more.
// It is safe for concurrent use.
type Banned struct {
	some  atomic.Bool // there may be some
	mu    sync.Mutex
	until map[bannedKey]time.Time
	swept time.Time
}

type bannedKey struct {
	rule, key string // the key is cut as package top cuts it
	cut       bool
}

// BannedKey is a key that is banned.
type BannedKey struct {
	Rule  string  `json:"rule"`
	Key   string  `json:"key"`           // up to 256 bytes of it
	Cut   bool    `json:"cut,omitempty"` // Key is the beginning of a longer one
	Until float64 `json:"until"`         // seconds since 1970
}

// The bounds of the list. Further keys are left out of it, and are banned nevertheless.
const (
	mostBanned = 10_000
	sweepTime  = time.Second
)

func bannedKeyOf(rule, key string) bannedKey {
	shown, cut := top.Kept(key)
	return bannedKey{rule, shown, cut}
}

// note learns of a decision.
func (b *Banned) note(o *layer.Observation) {
	switch {
	case o.Err != nil || o.Op == weir.OpPeek:
	case o.Decision.Cause == weir.ByBan:
		b.add(bannedKeyOf(o.Rule, o.Key), time.Now(), o.Decision.RetryAfter)
	case o.Decision.Allowed && b.some.Load():
		for _, q := range o.Requests {
			if weir.Kit.Compiled(q.Rule).Bans { // another daemon may have lifted its ban
				b.Lift(q.Rule.Name(), q.Key)
			}
		}
	}
}

func (b *Banned) add(k bannedKey, now time.Time, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = map[bannedKey]time.Time{}
	}
	if _, known := b.until[k]; !known && len(b.until) >= mostBanned && !b.sweep(now) {
		return
	}
	b.until[k] = now.Add(wait)
	b.some.Store(true)
}

// sweep drops the keys whose ban has ended, once a second at most, and reports whether there is room.
func (b *Banned) sweep(now time.Time) bool {
	if now.Sub(b.swept) >= sweepTime {
		b.swept = now
		b.drop(now)
	}
	return len(b.until) < mostBanned
}

func (b *Banned) drop(now time.Time) {
	for k, until := range b.until {
		if !until.After(now) {
			delete(b.until, k)
		}
	}
	b.some.Store(len(b.until) > 0)
}

// Lift takes a key out of the list that was reset.
func (b *Banned) Lift(rule, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.until, bannedKeyOf(rule, key))
}

// Keys returns up to n keys that are banned, those whose ban ends last first.
func (b *Banned) Keys(n int) []BannedKey {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(time.Now())
	all := make([]BannedKey, 0, len(b.until))
	for k, until := range b.until {
		all = append(all, BannedKey{k.rule, k.key, k.cut, float64(until.UnixMilli()) / 1000})
	}
	slices.SortFunc(all, func(x, y BannedKey) int {
		return cmp.Or(cmp.Compare(y.Until, x.Until), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Key, y.Key))
	})
	return all[:min(n, len(all))]
}

// counts returns how many keys are banned, by rule.
func (b *Banned) counts() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(time.Now())
	all := map[string]int{}
	for k := range b.until {
		all[k.rule]++
	}
	return all
}

// forget drops the keys of a rule that is gone.
func (b *Banned) forget(rule string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range b.until {
		if k.rule == rule {
			delete(b.until, k)
		}
	}
}
