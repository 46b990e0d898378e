package recipes

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Log keeps an entry for each Record in a sorted set, by time, and counts the entries of the last Window exactly. It
// uses ZREMRANGEBYSCORE, ZADD, ZCARD and PEXPIRE in one transaction. Memory and time grow with the entries of a
// window, including those that the caller then refuses.
type Log struct {
	Client rueidis.Client
	Window time.Duration
	// Weigh gives entries a cost: the use is then their sum, and every call reads all entries of the window. Without
	// it entries are counted, and every cost must be 1. Entries always store their cost.
	Weigh bool
	// Unit is that of the scores: a microsecond, a millisecond or a second. Window has whole units. Default: a
	// microsecond.
	Unit time.Duration
	Name Naming           // default: keys that no other recipe has
	Now  func() time.Time // default: time.Now
}

// Record counts the cost and returns the use in the last Window, including the cost.
func (r Log) Record(ctx context.Context, key Key, cost int64) (used int64, err error) {
	if err := r.checked(cost); err != nil {
		return 0, err
	}
	at := now(r.Now)
	name, b := r.Name.log(key, r.Window), r.Client.B()
	commands := []rueidis.Completed{
		b.Zremrangebyscore().Key(name).Min("-inf").Max(r.ended(at)).Build(),
		b.Zadd().Key(name).ScoreMember().ScoreMember(float64(r.score(at)), member(cost)).Build(),
		b.Zcard().Key(name).Build(),
		b.Pexpire().Key(name).Milliseconds(milliseconds(r.Window)).Build(),
	}
	if r.Weigh {
		commands = append(commands, b.Zrange().Key(name).Min("0").Max("-1").Build())
	}
	answers, err := transact(ctx, r.Client, commands...)
	if err != nil {
		return 0, fmt.Errorf("recipes: log: record: %w", err)
	}
	if r.Weigh {
		return sum(answers[4])
	}
	return answers[2].AsInt64()
}

// Fetch returns the use in the last Window.
func (r Log) Fetch(ctx context.Context, key Key) (used int64, err error) {
	if err := r.checked(1); err != nil {
		return 0, err
	}
	name, b, after := r.Name.log(key, r.Window), r.Client.B(), "("+r.ended(now(r.Now))
	if !r.Weigh {
		used, err = r.Client.Do(ctx, b.Zcount().Key(name).Min(after).Max("+inf").Build()).AsInt64()
	} else {
		var entries rueidis.RedisMessage
		entries, err = r.Client.Do(ctx, b.Zrangebyscore().Key(name).Min(after).Max("+inf").Build()).ToMessage()
		if err == nil {
			used, err = sum(entries)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("recipes: log: fetch: %w", err)
	}
	return used, nil
}

// checked returns an error for a value out of bounds.
func (r Log) checked(cost int64) error {
	if err := checked("log", r.Window, cost); err != nil {
		return err
	}
	switch unit := r.unit(); {
	case unit != time.Microsecond && unit != time.Millisecond && unit != time.Second:
		return fmt.Errorf("recipes: log: unit %v is not 1µs, 1ms or 1s", unit)
	case r.Window%unit != 0:
		return fmt.Errorf("recipes: log: window %v has no whole units of %v", r.Window, unit)
	case cost != 1 && !r.Weigh:
		return fmt.Errorf("recipes: log: cost %d is not 1, and Weigh is false", cost)
	}
	return nil
}

func (r Log) unit() time.Duration { return cmp.Or(r.Unit, time.Microsecond) }

// score returns the time as a score. A float64 holds microseconds exactly until the year 2255.
func (r Log) score(at time.Time) int64 { return at.UnixNano() / int64(r.unit()) }

// ended returns the newest score that no longer counts.
func (r Log) ended(at time.Time) string {
	return strconv.FormatInt(r.score(at)-int64(r.Window/r.unit()), 10)
}

// Members must be unique, since equal members replace each other. A member has a text unique to the process and a
// number that the process uses once.
var (
	process = rand.Text()
	entries atomic.Uint64
)

func member(cost int64) string {
	return process + "-" + strconv.FormatUint(entries.Add(1), 36) + "/" + strconv.FormatInt(cost, 10)
}

// sum returns the total cost of the members. Those of other programs have the cost 1.
func sum(members rueidis.RedisMessage) (total int64, err error) {
	list, err := members.AsStrSlice()
	if err != nil {
		return 0, err
	}
	for _, text := range list {
		_, cost, ours := strings.Cut(text, "/")
		n, err := strconv.ParseInt(cost, 10, 64)
		if !ours || err != nil {
			n = 1
		}
		total += n
	}
	return total, nil
}
