package recipes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/internal/redistest"
)

// counter is implemented by all recipes.
type counter interface {
	Record(ctx context.Context, key Key, cost int64) (used int64, err error)
	Fetch(ctx context.Context, key Key) (used int64, err error)
}

// clock stands still until a test moves it. It begins at the start of a window of every length that the tests use.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Unix(1_800_000_000, 0)} }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

// all returns the recipes over a window of 10 s.
func all(client rueidis.Client, now func() time.Time) map[string]counter {
	const window = 10 * time.Second
	return map[string]counter{
		"fixed window": FixedWindow{Client: client, Window: window, Now: now},
		"two windows":  TwoWindows{Client: client, Window: window, Now: now},
		"log":          Log{Client: client, Window: window, Now: now},
		"weighing log": Log{Client: client, Window: window, Weigh: true, Now: now},
	}
}

func connect(t testing.TB, addrs ...string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func record(t testing.TB, c counter, key Key, cost int64) int64 {
	t.Helper()
	used, err := c.Record(t.Context(), key, cost)
	if err != nil {
		t.Fatalf("Record(%+v, %d): %v", key, cost, err)
	}
	return used
}

func fetch(t testing.TB, c counter, key Key) int64 {
	t.Helper()
	used, err := c.Fetch(t.Context(), key)
	if err != nil {
		t.Fatalf("Fetch(%+v): %v", key, err)
	}
	return used
}

var alice = Key{Namespace: "shop", Resource: "login", Subject: "alice"}

func TestFetchAnswersWhatWasRecorded(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	for name, c := range all(client, newClock().now) {
		alice := Key{"shop", name, "alice"} // the two logs share what they keep
		if used := fetch(t, c, alice); used != 0 {
			t.Errorf("%s: Fetch of a key never seen = %d, want 0", name, used)
		}
		for i := range int64(5) {
			if used := record(t, c, alice, 1); used != i+1 {
				t.Errorf("%s: Record number %d = %d, want %d", name, i+1, used, i+1)
			}
		}
		if used := fetch(t, c, alice); used != 5 {
			t.Errorf("%s: Fetch after 5 = %d, want 5", name, used)
		}
		if used := fetch(t, c, Key{"shop", name, "bob"}); used != 0 {
			t.Errorf("%s: Fetch of another subject = %d, want 0", name, used)
		}
	}
}

func TestEntriesOfAWeighingLogHaveCosts(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	clock := newClock()
	log := Log{Client: client, Window: 10 * time.Second, Weigh: true, Now: clock.now}
	record(t, log, alice, 700)
	clock.advance(6 * time.Second)
	if used := record(t, log, alice, MaxCost); used != MaxCost+700 {
		t.Errorf("Record = %d, want %d", used, MaxCost+700)
	}
	clock.advance(4 * time.Second)
	if used := fetch(t, log, alice); used != MaxCost {
		t.Errorf("Fetch when the 700 have left = %d, want %d", used, MaxCost)
	}
}

// Each step moves the clock and asks.
func TestCountsLeaveTheWindowAsTheRecipeSays(t *testing.T) {
	steps := map[string][]struct {
		after  time.Duration // since the step before
		record int64
		want   int64 // of Fetch, after that
	}{
		"fixed window": {{5 * time.Second, 8, 8}, {4999999 * time.Microsecond, 0, 8}, {time.Microsecond, 0, 0}, {0, 3, 3}},
		// 8 units weigh 8 × (10-t)/10 in the next window, rounded up.
		"two windows": {{5 * time.Second, 8, 8}, {5 * time.Second, 0, 8}, {time.Second, 0, 8}, {time.Second, 0, 7}, {3 * time.Second, 2, 6}, {5 * time.Second, 0, 2}, {10 * time.Second, 0, 0}},
		"log":         {{5 * time.Second, 8, 8}, {5 * time.Second, 2, 10}, {4999999 * time.Microsecond, 0, 10}, {time.Microsecond, 0, 2}, {5 * time.Second, 0, 0}},
	}
	client := connect(t, redistest.Start(t).Addr)
	for name, list := range steps {
		clock := newClock()
		c := all(client, clock.now)[name]
		for i, step := range list {
			clock.advance(step.after)
			for range step.record {
				record(t, c, alice, 1)
			}
			if used := fetch(t, c, alice); used != step.want {
				t.Errorf("%s, step %d: Fetch = %d, want %d", name, i+1, used, step.want)
			}
		}
	}
}

// This is what docs/from/redis-recipes.md says about the boundary between windows: callers that record and continue while used <=
// limit, at the end of one window and the start of the next.
func TestOnlyTheLogHoldsTheLimitAroundABorder(t *testing.T) {
	const limit = 100
	want := map[string]int{"fixed window": 2 * limit, "two windows": limit + 1, "log": limit}
	client := connect(t, redistest.Start(t).Addr)
	for name, most := range want {
		clock := newClock()
		c := all(client, clock.now)[name]
		clock.advance(10*time.Second - time.Millisecond)
		admitted := admit(t, c, limit)
		clock.advance(101 * time.Millisecond) // a hundredth of the next window
		if admitted += admit(t, c, limit); admitted != most {
			t.Errorf("%s: %d admitted within 101 ms around a border, want %d of a limit of %d", name, admitted, most, limit)
		}
	}
}

// admit asks until it is refused for the third time, and returns the number of admitted calls.
func admit(t testing.TB, c counter, limit int64) (admitted int) {
	t.Helper()
	key := Key{"shop", "border", fmt.Sprintf("%T", c)}
	for refused := 0; refused < 3; {
		if used := fetch(t, c, key); used >= limit {
			refused++
			continue
		}
		record(t, c, key, 1)
		admitted++
	}
	return admitted
}

func TestEntriesOfOneInstantDoNotCollide(t *testing.T) {
	const callers, each = 16, 200
	client := connect(t, redistest.Start(t).Addr)
	log := Log{Client: client, Window: time.Minute, Now: newClock().now}
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range each {
				if _, err := log.Record(t.Context(), alice, 1); err != nil {
					t.Errorf("Record: %v", err)
				}
			}
		})
	}
	group.Wait()
	if used := fetch(t, log, alice); used != callers*each {
		t.Errorf("Fetch = %d after %d entries of one instant, want all", used, callers*each)
	}
}

func TestEveryKeyHasAnEnd(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	for _, c := range all(client, newClock().now) {
		record(t, c, alice, 1)
	}
	keys, _ := server.Do("KEYS", "*").([]any)
	if len(keys) != 3 { // the two logs share theirs
		t.Errorf("%d keys, want 3: %v", len(keys), keys)
	}
	for _, key := range keys {
		left, _ := server.Do("PTTL", key.(string)).(int64)
		if left < 1 || left > 20_000 {
			t.Errorf("key %s ends in %d ms, want 1 to 20,000: at most two windows of 10 s", key, left)
		}
	}
}

func TestKeysThatDifferHaveNamesThatDiffer(t *testing.T) {
	parts := []string{"", "a", "b", ":", "a:", ":a", "}", "{", "{}", "%", "%3A", "a%3Ab", "\x00", "\xff", "ü", " ", "a:b:{", "1"}
	seen := map[string]string{}
	for _, namespace := range parts {
		for _, resource := range parts {
			for _, subject := range parts {
				for _, window := range []time.Duration{time.Second, 2 * time.Second} {
					name := Key{namespace, resource, subject}.name("log", window)
					of := fmt.Sprintf("%q %q %q %v", namespace, resource, subject, window)
					if other, taken := seen[name]; taken {
						t.Fatalf("the keys %s and %s are both named %q", of, other, name)
					}
					seen[name] = of
					if open, end := strings.Index(name, "{"), strings.Index(name, "}"); open < 0 || end <= open+1 {
						t.Fatalf("the key %s is named %q, which has no hash tag", of, name)
					}
				}
			}
		}
	}
}

func TestRecipesCountInACluster(t *testing.T) {
	client := connect(t, redistest.StartCluster(t).Addrs()...)
	for name, c := range all(client, newClock().now) {
		for i := range 20 { // subjects on many slots
			key := Key{"shop", name, fmt.Sprint("user", i)}
			record(t, c, key, 1)
			record(t, c, key, 1)
			if used := fetch(t, c, key); used != 2 {
				t.Errorf("%s: Fetch of %s = %d, want 2", name, key.Subject, used)
			}
		}
	}
}

func TestWhatIsOutOfBoundsIsAnError(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	tests := []struct {
		c    counter
		cost int64
		want string
	}{
		{FixedWindow{Client: client}, 1, "recipes: fixed window: window 0s is not 1ms to 366 days in whole microseconds"},
		{TwoWindows{Client: client, Window: 367 * 24 * time.Hour}, 1, "recipes: two windows: window 8808h0m0s is not 1ms to 366 days in whole microseconds"},
		{Log{Client: client, Window: time.Second + 1}, 1, "recipes: log: window 1.000000001s is not 1ms to 366 days in whole microseconds"},
		{FixedWindow{Client: client, Window: time.Second}, 0, "recipes: fixed window: cost 0 is not 1 to 1000000000"},
		{TwoWindows{Client: client, Window: time.Second}, MaxCost + 1, "recipes: two windows: cost 1000000001 is not 1 to 1000000000"},
		{Log{Client: client, Window: time.Second}, 2, "recipes: log: cost 2 is not 1, and Weigh is false"},
		{Log{Client: client, Window: time.Second, Unit: time.Minute}, 1, "recipes: log: unit 1m0s is not 1µs, 1ms or 1s"},
		{Log{Client: client, Window: 1500 * time.Millisecond, Unit: time.Second}, 1, "recipes: log: window 1.5s has no whole units of 1s"},
	}
	for _, tt := range tests {
		if _, err := tt.c.Record(t.Context(), alice, tt.cost); err == nil || err.Error() != tt.want {
			t.Errorf("Record of cost %d: error %v, want %s", tt.cost, err, tt.want)
		}
	}
}

func TestAServerThatRefusesIsAnErrorThatSaysWhy(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	clock := newClock()
	name := all(client, clock.now)["fixed window"].(FixedWindow).key(alice)
	server.Do("SET", name, "not a number")
	for want, prepare := range map[string]func(){
		"value is not an integer": func() {},
		"OOM command not allowed": func() { server.Do("CONFIG", "SET", "maxmemory", "1") },
	} {
		prepare()
		_, err := all(client, clock.now)["fixed window"].Record(t.Context(), alice, 1)
		if err == nil || !strings.Contains(err.Error(), "recipes: fixed window: record: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("Record: error %v, want one that says %q", err, want)
		}
		server.Do("CONFIG", "SET", "maxmemory", "0")
	}
}

func TestShareIsExactAndRoundsAsAsked(t *testing.T) {
	const whole = int64(MaxWindow)
	tests := []struct{ count, part, up, down, nearest int64 }{
		{0, whole, 0, 0, 0}, {1, 0, 0, 0, 0}, {1, 1, 1, 0, 0}, {1, whole, 1, 1, 1}, {3, whole / 2, 2, 1, 2}, {4, whole / 2, 2, 2, 2},
		{3, whole/2 - 1, 2, 1, 1}, {1<<63 - 1, whole, 1<<63 - 1, 1<<63 - 1, 1<<63 - 1},
		{1<<63 - 1, whole - 1, 9223372036854775807 - 291, 9223372036854775807 - 292, 9223372036854775807 - 292},
	}
	for _, tt := range tests {
		for rounding, want := range map[Rounding]int64{RoundUp: tt.up, RoundDown: tt.down, RoundNearest: tt.nearest} {
			if got := rounding.share(tt.count, tt.part, whole); got != want {
				t.Errorf("rounding %d of %d × %d / %d = %d, want %d", rounding, tt.count, tt.part, whole, got, want)
			}
		}
	}
}

// A quarter into the next window, 3/4 of 7 units count: 5.25.
func TestTwoWindowsRoundAsAskedAndTellTheWeightedCount(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	clock := newClock()
	r := TwoWindows{Client: client, Window: 10 * time.Second, Now: clock.now}
	record(t, r, alice, 7)
	clock.advance(12500 * time.Millisecond)
	for rounding, want := range map[Rounding]int64{RoundUp: 6, RoundDown: 5, RoundNearest: 5} {
		r.Rounding = rounding
		if used := fetch(t, r, alice); used != want {
			t.Errorf("Fetch with rounding %d = %d, want %d", rounding, used, want)
		}
	}
	if used, err := r.Weighted(t.Context(), alice); err != nil || used != 5.25 {
		t.Errorf("Weighted = %v, %v, want 5.25", used, err)
	}
	r.Rounding = RoundDown
	if used := record(t, r, alice, 2); used != 7 {
		t.Errorf("Record rounded down = %d, want 7", used)
	}
	if used, err := r.Weighted(t.Context(), alice); err != nil || used != 7.25 {
		t.Errorf("Weighted = %v, %v, want 7.25", used, err)
	}
	r.Rounding = RoundNearest + 1
	for _, failed := range []func() error{
		func() error { _, err := r.Record(t.Context(), alice, 1); return err },
		func() error { _, err := r.Fetch(t.Context(), alice); return err },
		func() error { _, err := r.Weighted(t.Context(), alice); return err },
	} {
		if err := failed(); err == nil || err.Error() != "recipes: two windows: rounding 3 is not RoundUp, RoundDown or RoundNearest" {
			t.Errorf("rounding 3: error %v", err)
		}
	}
}
