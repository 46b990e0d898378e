package metrics

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// The bounds of the log of refusals: refusalGap between two lines of a rule, and as many lines of all rules.
const (
	refusalGap     = time.Second
	refusalRules   = 1000 // further ones share a gap
	refusalsPerSec = 10
	keyInLog       = 64 // bytes
)

// refusals logs a sample of the refused calls, with the number that was not logged. It logs keys at the level debug only,
// because they are often addresses, names or secrets of people.
type refusals struct {
	to    *slog.Logger
	all   *weir.Limiter
	rules *sync.Map // *rareRefusals, by name
	known *atomic.Int64
	rest  *rareRefusals
}

type rareRefusals struct {
	next  atomic.Int64 // the earliest time of the next line
	quiet atomic.Int64 // refusals since the last one
}

func newRefusals(to *slog.Logger) refusals {
	all, _ := weir.New(weir.TokenBucket{Rate: weir.Rate{Count: refusalsPerSec, Period: time.Second}}) // a good limit
	return refusals{to: to, all: all, rules: &sync.Map{}, known: &atomic.Int64{}, rest: &rareRefusals{}}
}

func (r *refusals) log(ctx context.Context, rule, reason, limit, key string) {
	if !r.to.Enabled(ctx, slog.LevelInfo) {
		return
	}
	rare, now := r.of(rule), time.Now().UnixNano()
	next := rare.next.Load()
	wait := time.Duration(next - now) // longer than the gap only after the clock was set back
	if wait > 0 && wait <= refusalGap || !rare.next.CompareAndSwap(next, now+int64(refusalGap)) || !r.all.Allow() {
		rare.quiet.Add(1)
		return
	}
	args := []any{"rule", rule, "reason", reason}
	if limit != "" {
		args = append(args, "limit", limit)
	}
	if r.to.Enabled(ctx, slog.LevelDebug) {
		args = append(args, "key", key[:min(len(key), keyInLog)])
	}
	if quiet := rare.quiet.Swap(0); quiet > 0 {
		args = append(args, "not_logged_before", quiet)
	}
	r.to.InfoContext(ctx, "refused", args...)
}

func (r *refusals) of(rule string) *rareRefusals {
	if rare, known := r.rules.Load(rule); known {
		return rare.(*rareRefusals)
	}
	if r.known.Load() >= refusalRules {
		return r.rest
	}
	rare, known := r.rules.LoadOrStore(rule, &rareRefusals{})
	if !known {
		r.known.Add(1)
	}
	return rare.(*rareRefusals)
}

func (r *refusals) forget(rule string) {
	if _, known := r.rules.LoadAndDelete(rule); known {
		r.known.Add(-1)
	}
}
