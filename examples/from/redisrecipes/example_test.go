// Package redisrecipes_test has the examples of docs/from/redis-recipes.md.
package redisrecipes_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/examples/recipes"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

var (
	began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	user  = recipes.Key{Namespace: "ratelimit", Resource: "test", Subject: "user1"}
)

// dial makes the client that all recipes of a program share. It is safe for concurrent use.
func dial(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

// clock is the time of an example. A program leaves Now out.
type clock struct{ at time.Time }

func (c *clock) now() time.Time        { return c.at }
func (c *clock) sleep(d time.Duration) { c.at = c.at.Add(d) }

// recorder is any of the recipes.
type recorder interface {
	Record(ctx context.Context, key recipes.Key, cost int64) (int64, error)
	Fetch(ctx context.Context, key recipes.Key) (int64, error)
}

func record(r recorder, times int) {
	for range times {
		used, err := r.Record(context.Background(), user, 1)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Print(used, " ")
	}
}

// Windows of a second: three requests, and one in the next window.
func fixedWindow(client rueidis.Client) {
	c := &clock{began}
	window := recipes.FixedWindow{Client: client, Window: time.Second, Name: recipes.Plain, Now: c.now}
	record(window, 3)
	c.sleep(time.Second)
	record(window, 1)
	fmt.Println()
}

// The last second, with a request every 300 ms.
func slidingLog(client rueidis.Client) {
	c := &clock{began}
	log := recipes.Log{Client: client, Window: time.Second, Unit: time.Millisecond, Name: recipes.Plain, Now: c.now}
	for range 3 {
		record(log, 1)
		c.sleep(300 * time.Millisecond)
	}
	c.sleep(600 * time.Millisecond)
	record(log, 1)
	fmt.Println()
}

// Five requests, and one 250 ms into the next second, where three quarters of the five still count: 1 + 3.75.
func slidingWindow(client rueidis.Client) {
	c := &clock{began}
	two := recipes.TwoWindows{Client: client, Window: time.Second, Rounding: recipes.RoundNearest, Name: recipes.Plain, Now: c.now}
	record(two, 5)
	c.sleep(1250 * time.Millisecond)
	record(two, 1)
	fmt.Println(two.Count(1, 5, c.at))
}

// A Node program with rolling-rate-limiter has recorded a login a second ago, so the next one is too early.
func rolling(client rueidis.Client) {
	b, ago := client.B(), time.Now().Add(-time.Second).UnixMicro()
	entry := b.Zadd().Key("shop:alice").ScoreMember().ScoreMember(float64(ago), "c5d1b0b6-8a0b-4c3f-9d63-3a1f6a3c7d10").Build()
	if err := client.Do(context.Background(), entry).Error(); err != nil {
		fmt.Println(err)
		return
	}
	logins := recipes.Rolling{
		Client: client, Window: time.Minute, Limit: 10, Gap: 10 * time.Second,
		Name: func(key recipes.Key, _ time.Time) string { return key.Namespace + key.Subject },
	}
	v, err := logins.Record(context.Background(), recipes.Key{Namespace: "shop:", Subject: "alice"})
	fmt.Println(v.Allowed, v.ByGap, v.Remaining, err)
}

// The engine decides instead: refused requests cost nothing, and it says when to come back.
func engine(client rueidis.Client) {
	engine, err := redislimit.New(client, redislimit.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rule, err := weir.NewRule("test", weir.SlidingLog{Rate: weir.PerHour(3)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		d, err := engine.Take(context.Background(), rule.For("user1", 1))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(d.Allowed, " ", d.Remaining, ", ")
		if !d.Allowed {
			fmt.Println("again in", d.RetryAfter.Round(time.Minute))
		}
	}
}

// The examples ask a real server, so a test runs them in place of an Output comment.
func TestTheExamplesPrintWhatThePageSays(t *testing.T) {
	for want, example := range map[string]func(rueidis.Client){
		"1 2 3 1 \n":           fixedWindow,
		"1 2 3 2 \n":           slidingLog,
		"1 2 3 4 5 5 5\n":      slidingWindow,
		"false true 8 <nil>\n": rolling,
		"true 2, true 1, true 0, false 0, again in 1h0m0s\n": engine,
	} {
		client, err := dial(redistest.Start(t).Addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := printed(t, func() { example(client) }); got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		client.Close()
	}
}

// printed returns what the function prints, which must fit in a pipe.
func printed(t *testing.T, f func()) string {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = writer
	f()
	os.Stdout = out
	_ = writer.Close()
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
