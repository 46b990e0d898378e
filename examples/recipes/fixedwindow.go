package recipes

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// FixedWindow counts in windows that begin at multiples of Window since 1970. It uses INCRBY and PEXPIRE in one
// transaction, so that no counter stays without an expiry. It stores one small key for each subject. Around the
// boundary of two windows up to twice the limit can pass.
type FixedWindow struct {
	Client rueidis.Client
	Window time.Duration
	Name   Naming           // default: keys that no other recipe has
	Now    func() time.Time // default: time.Now
}

// Record counts the cost and returns the use in this window, including the cost.
func (r FixedWindow) Record(ctx context.Context, key Key, cost int64) (used int64, err error) {
	if err := checked("fixed window", r.Window, cost); err != nil {
		return 0, err
	}
	name := r.key(key)
	answers, err := transact(ctx, r.Client,
		r.Client.B().Incrby().Key(name).Increment(cost).Build(),
		r.Client.B().Pexpire().Key(name).Milliseconds(milliseconds(r.Window)).Build())
	if err != nil {
		return 0, fmt.Errorf("recipes: fixed window: record: %w", err)
	}
	return answers[0].AsInt64()
}

// Fetch returns the use in this window.
func (r FixedWindow) Fetch(ctx context.Context, key Key) (used int64, err error) {
	if err := checked("fixed window", r.Window, 1); err != nil {
		return 0, err
	}
	used, err = r.Client.Do(ctx, r.Client.B().Get().Key(r.key(key)).Build()).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		return 0, fmt.Errorf("recipes: fixed window: fetch: %w", err)
	}
	return used, nil
}

func (r FixedWindow) key(key Key) string {
	return r.Name.counter(key, "fixed", r.Window, now(r.Now).UnixNano()/int64(r.Window))
}
