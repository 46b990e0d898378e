// Package recipes has the three usual ways to count in Redis, for programs that need nothing more: [FixedWindow],
// [Log] and [TwoWindows]. [Rolling] is a log with a limit and a least gap. Each takes the caller's client and needs no
// script. Make the client once and share it among all recipes, since it is safe for concurrent use:
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}, DisableCache: true})
//	logins := recipes.FixedWindow{Client: client, Window: time.Minute}
//
// A [Naming] lets a program share its keys with others that have such a recipe.
//
// Record counts a cost and returns the use in the window, including the cost. Fetch returns the use and writes
// nothing. The caller compares it with the limit:
//
//	used <= limit
//
// Such a caller also counts the requests that it refuses, and a caller that calls Fetch first can be overtaken
// between the two calls. The engine of package redislimit avoids both, because it decides where it counts;
// docs/from/redis-recipes.md compares them, and shows how to replace recipes of one's own.
//
// The time is the caller's. If the clocks of callers differ, their windows differ by as much.
package recipes

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// The bounds of counts.
const (
	MaxCost   = 1_000_000_000        // of one Record
	MinWindow = time.Millisecond     // Redis expires keys by the millisecond
	MaxWindow = 366 * 24 * time.Hour // as for every limit of this project
)

// checked returns an error for a value out of bounds.
func checked(recipe string, window time.Duration, cost int64) error {
	switch {
	case window < MinWindow || window > MaxWindow || window%time.Microsecond != 0:
		return fmt.Errorf("recipes: %s: window %v is not 1ms to 366 days in whole microseconds", recipe, window)
	case cost < 1 || cost > MaxCost:
		return fmt.Errorf("recipes: %s: cost %d is not 1 to %d", recipe, cost, MaxCost)
	}
	return nil
}

// transact runs the commands in one transaction and returns their answers. If the answer is lost, either all commands
// ran or none.
func transact(ctx context.Context, client rueidis.Client, commands ...rueidis.Completed) ([]rueidis.RedisMessage, error) {
	all := make([]rueidis.Completed, 0, len(commands)+2)
	all = append(all, client.B().Multi().Build())
	all = append(all, commands...)
	all = append(all, client.B().Exec().Build())
	replies := client.DoMulti(ctx, all...)
	for _, reply := range replies[:len(all)-1] { // more specific than the last reply, which says that all were refused
		if err := reply.Error(); err != nil {
			return nil, err
		}
	}
	answers, err := replies[len(all)-1].ToArray()
	for _, answer := range answers {
		if cause := answer.Error(); cause != nil && !rueidis.IsRedisNil(cause) {
			return nil, cause
		}
	}
	return answers, err
}

// now returns the time of a recipe whose Now is clock.
func now(clock func() time.Time) time.Time {
	if clock == nil {
		return time.Now()
	}
	return clock()
}

// milliseconds rounds up, because a key may stay longer than it counts but not shorter.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
