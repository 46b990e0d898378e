package redislimit_test

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// wantFailure fails unless err is an *Error for the reason, and d admits nothing.
func wantFailure(t *testing.T, what string, d weir.Decision, err error, reason redislimit.Reason, counted weir.Counted) {
	t.Helper()
	var failed *redislimit.Error
	if !errors.As(err, &failed) || failed.Op != "take" || failed.Reason != reason || failed.Counted != counted || d != (weir.Decision{}) {
		t.Errorf("%s: got %+v and error %#v (%v), want no decision and an Error of take with reason %q, counted: %v", what, d, err, err, reason, counted)
	}
}

// do sends one command that must succeed.
func do(t *testing.T, client rueidis.Client, words ...string) {
	t.Helper()
	if err := client.Do(context.Background(), client.B().Arbitrary(words...).Build()).Error(); err != nil {
		t.Fatalf("%q: %v", words, err)
	}
}

func TestAServerThatCannotWriteAdmitsNothing(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	rule := newRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(5)}, weir.SlidingLog{Rate: weir.PerHour(5)})
	take := func() (weir.Decision, error) { return engine.Take(t.Context(), rule.For("k", 1)) }
	for _, failing := range []struct {
		reason       redislimit.Reason
		breaks, heal []string
	}{
		{redislimit.OutOfMemory, []string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
		{redislimit.ReadOnly, []string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		{redislimit.ReadOnly, []string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}},
	} {
		do(t, client, failing.breaks...)
		d, err := take()
		wantFailure(t, strings.Join(failing.breaks, " "), d, err, failing.reason, weir.CountedNo)
		do(t, client, failing.heal...)
	}
	if d, err := take(); err != nil || !d.Allowed || d.Remaining != 4 {
		t.Errorf("after all of it: got %+v and %v, want the first of 5 admitted", d, err)
	}
}

func TestALostReplyAndAClosedEngineAreErrors(t *testing.T) {
	server := redistest.Start(t)
	engine, err := redislimit.Open("redis://"+server.Addr, redislimit.Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	rule := newRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(5)})
	if d, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
		t.Fatalf("Take: %+v, %v", d, err)
	}
	other, err := redislimit.Open("redis://"+server.Addr, redislimit.Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	other.Close()
	d, err := other.Take(t.Context(), rule.For("k", 1))
	wantFailure(t, "an engine that was closed", d, err, redislimit.Closed, weir.CountedNo)
	defer engine.Close()
	server.Kill()
	// An open connection may have carried a call. A connection that cannot be dialled has not.
	eventually(t, "a server that does not listen counts nothing", func() string {
		d, err := engine.Take(t.Context(), rule.For("k", 1))
		var failed *redislimit.Error
		if !errors.As(err, &failed) || failed.Reason != redislimit.Lost || d.Allowed {
			t.Fatalf("a server that was killed: got %+v and %v, want an Error with reason lost", d, err)
		}
		if failed.Counted != weir.CountedNo {
			return err.Error()
		}
		return ""
	})
}

func TestOpenSaysWhereItCouldNotConnect(t *testing.T) {
	wantOpenFailure := func(what, url, addr string, reason redislimit.Reason) {
		t.Helper()
		engine, err := redislimit.Open(url, redislimit.Options{})
		var failed *redislimit.Error
		if engine != nil || !errors.As(err, &failed) || failed.Op != "open" || failed.Reason != reason || failed.Counted != weir.CountedNo {
			t.Fatalf("%s: got error %#v (%v), want an Error of open with reason %q, and nothing counted", what, err, err, reason)
		}
		if text := err.Error(); !strings.Contains(text, addr) || strings.Contains(text, "counted") || strings.Contains(text, "decide") {
			t.Errorf("%s: got %q, want it to name %s, and nothing about decisions", what, text, addr)
		}
	}
	server := redistest.Start(t)
	server.Do("CONFIG", "SET", "requirepass", "secret")
	wantOpenFailure("a wrong password", "redis://:wrong@"+server.Addr, server.Addr, redislimit.Denied)
	server.Stop()
	wantOpenFailure("a server that hangs", "redis://:secret@"+server.Addr+"?timeout=100ms", server.Addr, redislimit.Lost)
	server.Cont()
	server.Kill()
	wantOpenFailure("where nothing listens", "redis://:secret@"+server.Addr, server.Addr, redislimit.Lost)
	wantOpenFailure("where no sentinel listens", "redis-sentinel://"+server.Addr+"/main", server.Addr, redislimit.Lost)
	mute := hangingUp(t)
	wantOpenFailure("where connections are closed at once", "redis://"+mute, mute, redislimit.Lost)
}

// hangingUp returns the address of a listener that closes every connection.
func hangingUp(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// A caller without a deadline waits for the timeout of the URL.
func TestAServerThatHangsIsGivenUpWithoutADeadline(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 16} { // alone on a connection, and many on each
		server := redistest.Start(t)
		engine, err := redislimit.Open("redis://"+server.Addr+"?timeout=1s", redislimit.Options{})
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		defer engine.Close()
		rule := newRule(t, "r", weir.FixedWindow{Rate: weir.Per(1_000_000, 300*24*time.Hour)})
		each := func(ask func()) {
			var all sync.WaitGroup
			for range callers {
				all.Go(ask)
			}
			all.Wait()
		}
		each(func() {
			for range 20 {
				admitted(t, engine, context.Background(), rule.For("k", 1))
			}
		})
		server.Stop()
		began := time.Now()
		each(func() {
			d, err := engine.Take(context.Background(), rule.For("k", 1))
			var failed *redislimit.Error
			if !errors.As(err, &failed) || failed.Reason != redislimit.Lost || d.Allowed {
				t.Errorf("Take while the server hangs: got %+v and %v, want an Error with reason lost", d, err)
			}
		})
		// Without the timeout, each call would take ten seconds.
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("%d callers waited %v for a server that hangs, want not much more than a second", callers, took)
		}
		server.Cont()
		eventually(t, "the server is asked again", func() string {
			if _, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// Redis denies a command inside the script, which by then may have written something.
func TestWhatTheACLRefusesIsDenied(t *testing.T) {
	server := redistest.Start(t)
	rule := newRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(50)}, weir.SlidingLog{Rate: weir.PerHour(50)}, weir.Concurrency{Slots: 50, Lease: time.Hour})
	for _, tt := range []struct {
		rights  string
		counted weir.Counted
	}{
		{"-evalsha", weir.CountedNo}, {"-eval -evalsha", weir.CountedNo}, {"resetkeys ~other:*", weir.CountedNo}, {"resetkeys %R~weir:*", weir.CountedNo},
		{"-time", weir.CountedUnknown}, {"-mget", weir.CountedUnknown}, {"-psetex", weir.CountedUnknown}, {"-append", weir.CountedUnknown}, {"-@all +hello +evalsha", weir.CountedUnknown},
	} {
		server.Do("FLUSHALL")
		server.Do("ACL", "SETUSER", "weir", "reset", "on", ">secret", "~*", "+@all")
		engine, err := redislimit.Open("redis://weir:secret@"+server.Addr, redislimit.Options{})
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		defer engine.Close()
		if d, err := engine.Take(t.Context(), rule.For("other", 1)); err != nil || !d.Allowed {
			t.Fatalf("Take: %+v, %v", d, err)
		}
		server.Do(append([]string{"ACL", "SETUSER", "weir"}, strings.Fields(tt.rights)...)...)
		d, err := engine.Take(t.Context(), rule.For("k", 1))
		for try := 0; try < 2 && err == nil; try++ { // only a state that was written twice is appended to
			d, err = engine.Take(t.Context(), rule.For("k", 1))
		}
		wantFailure(t, tt.rights, d, err, redislimit.Denied, tt.counted)
	}
}

func TestCheckRefusesWhatRedisDoesNotHoldExactly(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	year := 366 * 24 * time.Hour
	for _, tt := range []struct {
		limit weir.Limit
		field string // that is refused; empty if none
	}{
		{weir.TokenBucket{Rate: weir.Per(1_000_000, 30*24*time.Hour)}, ""},
		{weir.TokenBucket{Rate: weir.Per(redislimit.MaxCount, year)}, ""},
		{weir.TokenBucket{Rate: weir.Per(redislimit.MaxCount+1, year)}, "rate"},
		{weir.TokenBucket{Rate: weir.PerSecond(1), Burst: redislimit.MaxCount}, ""},
		{weir.TokenBucket{Rate: weir.PerSecond(1), Burst: redislimit.MaxCount + 1}, "burst"},
		{weir.TokenBucket{Rate: weir.Per(1, year), Burst: 71}, ""},
		{weir.TokenBucket{Rate: weir.Per(1, year), Burst: 72}, "burst"},
		{weir.TokenBucket{Rate: weir.Per(1, 999*time.Nanosecond)}, "period"},
		{weir.LeakyBucket{Rate: weir.PerSecond(1), Queue: redislimit.MaxCount - 1}, ""},
		{weir.LeakyBucket{Rate: weir.PerSecond(1), Queue: redislimit.MaxCount}, "queue"},
		{weir.FixedWindow{Rate: weir.Per(redislimit.MaxCount, time.Second)}, ""},
		{weir.SlidingWindow{Rate: weir.Per(2*redislimit.MaxCount, year)}, "rate"},
		{weir.SlidingWindow{Rate: weir.Per(1, 1500*time.Nanosecond)}, "period"},
		{weir.SlidingLog{Rate: weir.PerDay(redislimit.MaxLog)}, ""},
		{weir.SlidingLog{Rate: weir.PerDay(redislimit.MaxLog + 1)}, "rate"},
		{weir.SlidingLog{Rate: weir.PerDay(5), Gap: 1}, "gap"},
		{weir.RateGate{Rate: weir.PerDay(redislimit.MaxLog + 1)}, "rate"},
		{weir.Cycle{Rate: weir.PerDay(5), Origin: 1}, "origin"},
		{weir.Concurrency{Slots: redislimit.MaxSlots + 1}, "slots"},
		{weir.Concurrency{Slots: 5, Lease: 1}, "lease"},
	} {
		rule := newRule(t, "r", tt.limit)
		err := engine.Check(rule)
		var refused *weir.LimitError
		if errors.As(err, &refused) != (tt.field != "") || refused != nil && (refused.Field != tt.field || refused.Code != weir.CodeEngine) {
			t.Errorf("Check(%s): got %v, want it refused for its %q", tt.limit, err, tt.field)
		}
		if _, took := engine.Take(t.Context(), rule.For("k", 0)); errors.As(took, &refused) != (err != nil) {
			t.Errorf("Take under %s: got error %v, where Check says %v", tt.limit, took, err)
		}
	}
}

func TestTheLargestLimitsAreExact(t *testing.T) {
	now := int64(4_000_000_000_000_000) // us: the year 2096
	clock := func() int64 { return now * 1000 }
	redis := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{Clock: clock})
	memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	year := 366 * 24 * time.Hour
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(999_999_937, year), Burst: redislimit.MaxCount},
		weir.LeakyBucket{Rate: weir.Per(999_999_937, year), Queue: redislimit.MaxCount - 1, NoDelay: 7},
		weir.FixedWindow{Rate: weir.Per(redislimit.MaxCount, year)},
		weir.SlidingWindow{Rate: weir.Per(redislimit.MaxCount-1, year-time.Microsecond)},
		weir.Cycle{Rate: weir.Per(redislimit.MaxCount, year-time.Microsecond)},
		weir.SlidingLog{Rate: weir.Per(redislimit.MaxLog, year)},
		weir.RateGate{Rate: weir.Per(redislimit.MaxLog, year)},
	} {
		rule := newRule(t, limit.String(), limit)
		for i, cost := range []int64{1, redislimit.MaxLog / 3, redislimit.MaxLog / 7 * 3, 999, 499_999_983, 300_000_007, 199_999_999, 1, math.MaxInt64} {
			for _, wait := range []int64{0, 1, 1<<44 - 1, 12345} {
				now += wait
				want, err := memory.Take(t.Context(), rule.For("k", cost))
				if err != nil {
					t.Fatalf("%s: memory: %v", rule, err)
				}
				got, err := redis.Take(t.Context(), rule.For("k", cost))
				want.RetryAfter, want.ResetAfter, want.LimitReset, want.Delay = ticks(want.RetryAfter), ticks(want.ResetAfter), ticks(want.LimitReset), ticks(want.Delay)
				if err != nil || got != want {
					t.Errorf("%s: step %d, Take(%d):\ngot  %+v (%v)\nwant %+v", rule, i, cost, got, err, want)
				}
			}
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	client := dial(t, redistest.Start(t))
	for _, tt := range []struct {
		options redislimit.Options
		field   string
	}{
		{redislimit.Options{Prefix: "a{b}"}, "prefix"},
		{redislimit.Options{Lanes: -1}, "lanes"},
		{redislimit.Options{Lanes: 16385}, "lanes"},
		{redislimit.Options{Batch: 1025}, "batch"},
		{redislimit.Options{Flights: 1025}, "flights"},
		{redislimit.Options{Linger: -1}, "linger"},
	} {
		_, err := redislimit.New(client, tt.options)
		var refused *weir.OptionError
		if !errors.As(err, &refused) || refused.Field != tt.field {
			t.Errorf("New(%+v): got %v, want a *weir.OptionError about %s", tt.options, err, tt.field)
		}
	}
}

// An error names the call that was made, although the script has one operation for records and returns.
func TestErrorsOfReturnsSaySo(t *testing.T) {
	server := redistest.Start(t)
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	rule := newRule(t, "r", weir.TokenBucket{Rate: weir.PerSecond(1)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed *redislimit.Error
	if _, err := engine.Return(ctx, rule.For("k", 1)); !errors.As(err, &failed) || failed.Op != "return" {
		t.Errorf("Return: %v, want an error of a return", err)
	}
	server.Kill()
	results := make([]weir.Result, 2)
	calls := []weir.Call{{Op: weir.OpReturn, Requests: []weir.Request{rule.For("k", 1)}}, {Op: weir.OpRecord, Requests: []weir.Request{rule.For("k", 1)}}}
	if err := engine.Each(t.Context(), calls, results); err != nil {
		t.Fatal(err)
	}
	for i, op := range []string{"return", "record"} {
		if !errors.As(results[i].Err, &failed) || failed.Op != op {
			t.Errorf("call %d of Each: %v, want an error of a %s", i, results[i].Err, op)
		}
	}
}
