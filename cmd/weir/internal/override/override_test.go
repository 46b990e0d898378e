package override

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/sqlengine"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

var quiet = slog.New(slog.DiscardHandler)

func rule(t testing.TB, text string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newTable(t testing.TB, path string) *Table {
	t.Helper()
	table, err := OpenFile(path, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// set puts an entry into force for an hour: RULE KEY LIMIT, with a star behind the key of a prefix.
func set(t testing.TB, table *Table, engine weir.Engine, rule, key, limit string) {
	t.Helper()
	key, prefix := strings.CutSuffix(key, "*")
	if _, err := table.Set(t.Context(), &Entry{Rule: rule, Key: key, Prefix: prefix, Limit: limit, Until: time.Now().Add(time.Hour)}, engine); err != nil {
		t.Fatal(err)
	}
}

func said(d weir.Decision, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v %s %s %d/%d retry %s", d.Allowed, d.Rule, d.Key, d.Remaining, d.Limit, d.RetryAfter)
}

func TestAnEntryStandsInForTheLimitOfAKeyUntilItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, "")
		engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
		a, b := rule(t, "a=fixed window 2/366d"), rule(t, "b=fixed window 5/366d")
		set(t, table, engine, "a", "blocked", Block)
		set(t, table, engine, "", "free", Allow)
		set(t, table, engine, "a", "more", "fixed window 9/366d")
		set(t, table, engine, "", "bot-*", Block)
		set(t, table, engine, "a", "bot-good-*", Allow)
		set(t, table, engine, "a", "bot-2", "fixed window 3/366d")
		take := func(requests ...weir.Request) string { return said(engine.Take(t.Context(), requests...)) }
		const free = "9007199254740992/9007199254740992 retry 0s"
		for i, c := range []struct {
			requests []weir.Request
			want     string
		}{
			{[]weir.Request{a.For("x", 1)}, "true a x 1/2 retry 0s"},
			{[]weir.Request{a.For("blocked", 1)}, "false a blocked 0/0 retry 1h0m0s"},
			{[]weir.Request{a.For("blocked", 1), b.For("blocked", 1)}, "false a blocked 0/0 retry 1h0m0s"},
			{[]weir.Request{b.For("blocked", 1)}, "true b blocked 4/5 retry 0s"},
			{[]weir.Request{a.For("free", 100)}, "true a free " + free},
			{[]weir.Request{a.For("free", 3), b.For("free", 9), b.For("y", 1)}, "true b y 4/5 retry 0s"},
			{[]weir.Request{a.For("more", 4)}, "true a more 5/9 retry 0s"},
			{[]weir.Request{a.For("bot-1", 1)}, "false a bot-1 0/0 retry 1h0m0s"},
			{[]weir.Request{b.For("bot-good-1", 1)}, "false b bot-good-1 0/0 retry 1h0m0s"},
			{[]weir.Request{a.For("bot-good-1", 7)}, "true a bot-good-1 " + free},
			{[]weir.Request{a.For("bot-2", 1)}, "true a bot-2 2/3 retry 0s"},
			{[]weir.Request{a.For("bot", 1)}, "true a bot 1/2 retry 0s"},
		} {
			if got := take(c.requests...); got != c.want {
				t.Errorf("%d: got %s, want %s", i, got, c.want)
			}
		}
		results := make([]weir.Result, 3)
		calls := enginekit.Calls(weir.OpTake, a.For("blocked", 1), a.For("x", 1), a.For("free", 1))
		if err := engine.Each(t.Context(), calls, results); err != nil || results[0].Decision.RetryAfter != time.Hour || !results[1].Decision.Allowed || !results[2].Decision.Allowed {
			t.Errorf("several calls: %+v, %v", results, err)
		}
		if calls[0].Requests[0].Rule != a {
			t.Error("the calls of the caller were changed")
		}
		r, err := engine.Reserve(t.Context(), a.For("blocked", 1))
		if err != nil || r.Decision.Allowed || r.Decision.RetryAfter != time.Hour {
			t.Errorf("a reservation: %+v, %v", r, err)
		}
		// A limit that stood in leaves what was used.
		time.Sleep(time.Hour)
		if got := take(a.For("blocked", 1)); got != "true a blocked 1/2 retry 0s" {
			t.Errorf("after the time: got %s", got)
		}
		if got := said(engine.Peek(t.Context(), a.For("more", 1))); !strings.HasPrefix(got, "false a more 0/2 ") {
			t.Errorf("four units were used under another limit: got %s", got)
		}
		if got := len(table.Entries()); got != 0 {
			t.Errorf("%d entries are listed after their time", got)
		}
	})
}

// A slot must come back to the limit that it was taken from.
func TestEntriesAndSlotsDoNotMix(t *testing.T) {
	table := newTable(t, "")
	engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
	slots, units := rule(t, "slots=concurrency 1 lease 1m"), rule(t, "units=1/h")
	set(t, table, engine, "", "k", Allow)
	for range 2 {
		_, _ = engine.Take(t.Context(), slots.For("k", 1))
	}
	if d, _ := engine.Peek(t.Context(), slots.For("k", 1)); d.Allowed {
		t.Error("an allow lets a caller have a slot that nobody could give back")
	}
	set(t, table, engine, "", "k", "concurrency 2 lease 1m")
	if d, _ := engine.Take(t.Context(), slots.For("k", 1)); !d.Allowed {
		t.Errorf("another number of slots: got %+v", d)
	}
	if d, _ := engine.Take(t.Context(), units.For("k", 1)); d.Limit != 1 {
		t.Errorf("slots in place of units: got %+v", d)
	}
	set(t, table, engine, "", "k", Block)
	if d, _ := engine.Take(t.Context(), slots.For("k", 1)); d.Allowed || d.Limit != 0 {
		t.Errorf("blocked: got %+v", d)
	}
}

// A Guard keeps costs of work that was done by what the rule says, also where an entry stands in for its limit.
func TestAnEntryChargesAfterTheWorkAsItsRuleDoes(t *testing.T) {
	table := newTable(t, "")
	before := rule(t, "a=10/h")
	after, err := before.ChargeAfter()
	if err != nil {
		t.Fatal(err)
	}
	set(t, table, weir.NewMemory(weir.MemoryOptions{}), "a", "k", "20/h")
	for _, asked := range []*weir.Rule{after, before, after} {
		got := table.Requests([]weir.Request{asked.For("k", 1)})[0].Rule
		if got == asked || got.ChargesAfter() != asked.ChargesAfter() {
			t.Errorf("%v stands in for a rule that charges after: %v, want %v", got, got.ChargesAfter(), asked.ChargesAfter())
		}
	}
}

func TestWrongEntriesAreRefused(t *testing.T) {
	table := newTable(t, "")
	engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
	soon := time.Now().Add(time.Hour)
	for want, e := range map[string]Entry{
		"want a time to come":     {Limit: Block, Until: time.Now()},
		"more than 366 days":      {Limit: Block, Until: soon.AddDate(2, 0, 0)},
		`unexpected "5/x"`:        {Limit: "5/x", Until: soon},
		"stands alone":            {Limit: "leaky bucket 5/s queue 9", Until: soon},
		"has no lease":            {Limit: "concurrency 5", Until: soon},
		"shadows and candidates":  {Limit: Block, Until: soon, Rule: "a~shadow"},
		"rule, key or limit is l": {Limit: Block, Until: soon, Key: strings.Repeat("k", weir.MaxKey+1)},
	} {
		if _, err := table.Set(t.Context(), &e, engine); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", e, err, want)
		}
	}
	if _, err := table.Remove(t.Context(), "a", "b", false); err != ErrUnknown {
		t.Errorf("removing none: got %v", err)
	}
}

func TestEntriesHaveBounds(t *testing.T) {
	var entries []Entry
	until := time.Now().Add(time.Hour)
	for i := range MaxEntries + 1 {
		entries = append(entries, Entry{Key: fmt.Sprint(i), Limit: Block, Until: until})
	}
	if _, err := newIndex(entries, time.Now(), func(Entry, error) {}); err != errFull {
		t.Errorf("%d entries: got %v", len(entries), err)
	}
	entries = entries[:0]
	for i := range maxLengths + 1 {
		entries = append(entries, Entry{Key: strings.Repeat("k", i), Prefix: true, Limit: Block, Until: until})
	}
	if _, err := newIndex(entries, time.Now(), func(Entry, error) {}); err == nil {
		t.Errorf("%d lengths of prefixes were accepted", len(entries))
	}
}

func TestEntriesOutliveTheProcessInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.state.overrides")
	table := newTable(t, path)
	engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
	set(t, table, engine, "a", "x", Block)
	set(t, table, engine, "a", "x", Allow)
	set(t, table, engine, "", "y*", "5/m")
	if _, err := table.Remove(t.Context(), "", "y", true); err != nil {
		t.Fatal(err)
	}
	set(t, table, engine, "", "z", "5/m")
	want := fmt.Sprint(table.Entries())
	if got := fmt.Sprint(newTable(t, path).Entries()); got != want || strings.Count(got, "{") != 2 {
		t.Errorf("after a restart: got %s, want %s", got, want)
	}
}

func TestEntriesReachEveryDaemonWithinASecond(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) func() *Table{"Redis": onRedis, "database": onDatabase} {
		t.Run(name, func(t *testing.T) { testALookSeesAllEntries(t, start(t)) })
	}
	t.Run("a look in time", func(t *testing.T) { synctest.Test(t, testWatchLooksWithinASecond) })
}

func onRedis(t *testing.T) func() *Table {
	url := "redis://" + redistest.Start(t).Addr
	return func() *Table {
		table, end, err := OpenRedis(url, quiet)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(end)
		return table
	}
}

func onDatabase(t *testing.T) func() *Table {
	url := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	return func() *Table {
		e, err := sqlengine.Open(t.Context(), url, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		table, err := OpenDatabase(t.Context(), e.Store(), quiet)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
}

func testALookSeesAllEntries(t *testing.T, newTable func() *Table) {
	tables := []*Table{newTable(), newTable()}
	engine := weir.NewMemory(weir.MemoryOptions{})
	wantAfterALook := func(from, to *Table) {
		t.Helper()
		if err := to.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(to.Entries()), fmt.Sprint(from.Entries()); got != want || len(to.Entries()) != 2 {
			t.Errorf("after a look another daemon has %s, want %s", got, want)
		}
	}
	set(t, tables[0], engine, "a", "x", Block)
	set(t, tables[0], engine, "a", "y*", "5/m")
	wantAfterALook(tables[0], tables[1])
	set(t, tables[1], engine, "b", "z", Allow)
	if _, err := tables[1].Remove(t.Context(), "a", "x", false); err != nil {
		t.Fatal(err)
	}
	wantAfterALook(tables[1], tables[0])
	wantAfterALook(tables[1], newTable())
}

// sharedStore is what daemons share.
type sharedStore struct {
	mu      sync.Mutex
	entries []Entry
}

func (s *sharedStore) put(_ context.Context, _ target, e *Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, *e)
	return nil
}

func (s *sharedStore) load(context.Context) ([]Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries), true, nil
}

func (s *sharedStore) secret(_ context.Context, fresh []byte) ([]byte, error) { return fresh, nil }

func testWatchLooksWithinASecond(t *testing.T) {
	shared, tables := &sharedStore{}, [2]*Table{}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	for i := range tables {
		table, err := open(ctx, shared, quiet)
		if err != nil {
			t.Fatal(err)
		}
		tables[i] = table
		watching.Go(func() { table.Watch(ctx) })
	}
	for i := range 5 {
		time.Sleep(time.Duration(i) * 130 * time.Millisecond) // at any phase of the looks
		set(t, tables[i%2], weir.NewMemory(weir.MemoryOptions{}), "a", fmt.Sprint(i), Block)
		time.Sleep(time.Second)
		if got := len(tables[1-i%2].Entries()); got != i+1 {
			t.Errorf("a second after entry %d, the other daemon has %d", i+1, got)
		}
	}
	stop()
	watching.Wait()
}

// A Redis without persistence loses the entries at a restart, and a block must last until its time.
func TestEntriesOutliveALossOfTheDataOfRedis(t *testing.T) {
	server := redistest.Start(t)
	open := func() *Table {
		table, end, err := OpenRedis("redis://"+server.Addr, quiet)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(end)
		return table
	}
	one, two, engine := open(), open(), weir.NewMemory(weir.MemoryOptions{})
	set(t, one, engine, "a", "x", Block)
	set(t, two, engine, "", "y*", "5/m")
	secret, err := one.Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	poll := func() {
		for _, table := range []*Table{one, two} {
			if err := table.refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	poll()
	want := fmt.Sprint(one.Entries())
	for range 2 {
		server.Do("FLUSHALL")
		poll() // which restores
		poll()
		if got, err := one.Secret(t.Context()); err != nil || string(got) != string(secret) {
			t.Errorf("the secret is another one (%v)", err)
		}
		for name, table := range map[string]*Table{"first": one, "second": two, "later": open()} {
			if got := fmt.Sprint(table.Entries()); got != want || strings.Count(got, "{") != 2 {
				t.Errorf("after a loss the %s daemon has %s, want %s", name, got, want)
			}
		}
		if got, err := open().Secret(t.Context()); err != nil || string(got) != string(secret) {
			t.Errorf("a later daemon has another secret (%v)", err)
		}
	}
	if _, err := two.Remove(t.Context(), "a", "x", false); err != nil {
		t.Fatal(err)
	}
	poll()
	if got := len(one.Entries()); got != 1 {
		t.Errorf("%d entries are left after one of two was removed", got)
	}
}

// Daemons that change entries of one database at the same time lose none.
func TestChangesOfSeveralDaemonsAreAllKept(t *testing.T) {
	newTable, engine := onDatabase(t), weir.NewMemory(weir.MemoryOptions{})
	var all sync.WaitGroup
	for i := range 3 {
		table := newTable()
		all.Go(func() {
			for j := range 5 {
				set(t, table, engine, "a", fmt.Sprint(i, "-", j), Block)
			}
		})
	}
	all.Wait()
	if got := len(newTable().Entries()); got != 15 {
		t.Errorf("%d entries are kept, want 15", got)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, n := range []int{-1, 0, 10, MaxEntries} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			table := newTable(b, "")
			engine := weir.Engine(weir.NewMemory(weir.MemoryOptions{}))
			if n >= 0 {
				engine = table.Around(engine)
			}
			entries := make([]Entry, max(n, 0))
			for i := range entries {
				entries[i] = Entry{Key: fmt.Sprintf("key-%d", i), Prefix: i%100 == 0, Limit: Block, Until: time.Now().Add(time.Hour)}
			}
			if err := table.use(entries); err != nil {
				b.Fatal(err)
			}
			request := rule(b, "a=token bucket 10000000/s").For("192.0.2.1", 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := engine.Take(context.Background(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
