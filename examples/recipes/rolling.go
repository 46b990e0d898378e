package recipes

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// Rolling is a [Log] with a limit and a least gap between attempts, as rolling-rate-limiter keeps it: it records refused
// attempts, too, so a caller that does not slow down is never allowed. It reads two entries, however many there are.
type Rolling struct {
	Client rueidis.Client
	Window time.Duration
	Limit  int64            // of attempts in the last Window
	Gap    time.Duration    // the least time since the attempt before, at most Window; default: none
	Name   Naming           // default: that of Log
	Now    func() time.Time // default: time.Now
}

// Verdict is the answer to an attempt.
type Verdict struct {
	Allowed   bool
	ByCount   bool          // the limit refuses it
	ByGap     bool          // the gap refuses it, perhaps besides
	Remaining int64         // further attempts that the limit allows now
	NextAfter time.Duration // until the next attempt can be allowed, if there is none before
}

// Record records an attempt, and returns whether it is allowed.
func (r Rolling) Record(ctx context.Context, key Key) (Verdict, error) {
	log, at, name, b := r.log(), now(r.Now), r.Name.log(key, r.Window), r.Client.B()
	return r.judge(ctx, at, name, 1,
		b.Zremrangebyscore().Key(name).Min("-inf").Max(log.ended(at)).Build(),
		b.Zadd().Key(name).ScoreMember().ScoreMember(float64(log.score(at)), member(1)).Build(),
		b.Pexpire().Key(name).Milliseconds(milliseconds(r.Window)).Build())
}

// Fetch returns what Record would return, and writes nothing.
func (r Rolling) Fetch(ctx context.Context, key Key) (Verdict, error) {
	return r.judge(ctx, now(r.Now), r.Name.log(key, r.Window), 0)
}

func (r Rolling) log() Log { return Log{Client: r.Client, Window: r.Window} }

// judge judges an attempt after some commands. It reads, in one transaction with them, the number of attempts, the newest one
// before it, and the one that leaves the window when another attempt is allowed. The log has this attempt recorded times.
func (r Rolling) judge(ctx context.Context, at time.Time, name string, recorded int64, commands ...rueidis.Completed) (v Verdict, err error) {
	if err := r.checked(); err != nil {
		return v, err
	}
	log, b, first := r.log(), r.Client.B(), len(commands)
	one := func(fromEnd int64) rueidis.Completed {
		return b.Zrange().Key(name).Min(fmt.Sprint(-fromEnd)).Max(fmt.Sprint(-fromEnd)).Withscores().Build()
	}
	blocking := r.Limit - 1 + recorded
	answers, err := transact(ctx, r.Client, append(commands,
		b.Zcount().Key(name).Min("("+log.ended(at)).Max("+inf").Build(), one(1+recorded), one(max(blocking, 1)))...)
	if err != nil {
		return v, fmt.Errorf("recipes: rolling: %w", err)
	}
	count, err := answers[first].AsInt64()
	if err != nil {
		return v, fmt.Errorf("recipes: rolling: %w", err)
	}
	count += 1 - recorded
	v.ByCount, v.Remaining, v.NextAfter = count > r.Limit, max(r.Limit-count, 0), r.Gap
	if before, ok := age(answers[first+1], log.score(at)); ok && count > 1 {
		v.ByGap = before < r.Gap
	}
	if count >= r.Limit {
		oldest, _ := age(answers[first+2], log.score(at))
		if blocking == 0 { // this attempt itself
			oldest = 0
		}
		v.NextAfter = max(v.NextAfter, r.Window-oldest)
	}
	v.Allowed = !v.ByCount && !v.ByGap
	return v, nil
}

// age returns the time since an entry, if there is one.
func age(entry rueidis.RedisMessage, score int64) (age time.Duration, ok bool) {
	entries, err := entry.AsZScores()
	if err != nil || len(entries) == 0 {
		return 0, false
	}
	return time.Duration(score-int64(entries[0].Score)) * time.Microsecond, true
}

func (r Rolling) checked() error {
	switch {
	case r.Limit < 1 || r.Limit > MaxCost:
		return fmt.Errorf("recipes: rolling: limit %d is not 1 to %d", r.Limit, MaxCost)
	case r.Gap < 0 || r.Gap > r.Window || r.Gap%time.Microsecond != 0:
		return fmt.Errorf("recipes: rolling: gap %v is not 0 to the window of %v in whole microseconds", r.Gap, r.Window)
	}
	return checked("rolling", r.Window, 1)
}
