package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/sqllimit"
)

// strangeKeys are keys that a database could take for one another, or refuse.
var strangeKeys = []string{
	"a", "A", "a ", " a", "a\x00", "a\x00\x00", "ä", "a\u0308", "Ä", "ss", "ß", "\xff", "\xff\xfe", "\xc3", "%", "_", `\`, `\x61`, "'", `"`, "`", "$1", "?", "\u2028", "🐟",
	strings.Repeat("k", 200), strings.Repeat("k", 201), strings.Repeat("k", 200) + "K", strings.Repeat("\xff\x00", 512), strings.Repeat("k", 232), strings.Repeat("é", 2048),
}

func TestStrangeKeysHaveRowsOfTheirOwn(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		db, table := d.open(t), newTable()
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1000)})
		for _, conflicts := range []int{0, -1} {
			for i, key := range strangeKeys { // each with a count of its own
				e := openEngine(t, db, d.dialect, sqllimit.Options{Table: table, Store: enginekit.StoreOptions{Conflicts: conflicts}})
				if _, err := e.Take(t.Context(), rule.For(key, int64(i+1))); err != nil {
					t.Errorf("%.20q: %v", key, err)
				}
			}
		}
		e := openEngine(t, db, d.dialect, sqllimit.Options{Table: table})
		for i, key := range strangeKeys {
			if d, err := e.Peek(t.Context(), rule.For(key, 0)); err != nil || 1000-d.Remaining != 2*int64(i+1) || d.Key != key {
				t.Errorf("%.20q: %d used (%v), want %d", key, 1000-d.Remaining, err, 2*(i+1))
			}
		}
	})
}

// Random changes are made, all their writes or none, exactly if their rows have the old versions and the clock is not before.
func TestChangesAreMadeIfTheirVersionsAreRight(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		m := &storeModel{T: t, r: rand.New(rand.NewPCG(randtest.Seed(t), 0)), rows: map[string]enginekit.Row{}}
		m.store = openEngine(t, d.open(t), d.dialect, sqllimit.Options{Table: newTable()}).Store()
		for range 150 {
			m.swap()
		}
		m.compare()
	})
}

// Of changes that insert the same row at the same time, one is made, and the others leave nothing behind.
func TestAChangeThatLosesARaceLeavesNothing(t *testing.T) {
	const racers = 4
	everyDatabase(t, func(t *testing.T, d database) {
		store := openEngine(t, d.open(t), d.dialect, sqllimit.Options{Table: newTable()}).Store()
		for round := range 25 {
			write := func(name string) enginekit.Write {
				return enginekit.Write{Key: fmt.Sprint(round, name), New: 1, Ends: math.MaxInt64}
			}
			var all sync.WaitGroup
			var changes [racers]enginekit.Change
			var private []string
			for i := range racers {
				changes[i].Writes = []enginekit.Write{write(fmt.Sprint("a", i)), write("b")}
				private = append(private, changes[i].Writes[0].Key)
				all.Go(func() {
					err := error(enginekit.ErrConflict)
					for try := 0; errors.Is(err, enginekit.ErrConflict) && try < 20; try++ {
						_, err = store.Swap(t.Context(), 0, changes[i:i+1])
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			rows, _, err := store.Load(t.Context(), private)
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			for i := range racers {
				if changes[i].Done {
					made++
				}
				if changes[i].Done != (rows[i].Version == 1) {
					t.Errorf("round %d: done %t, and its own row has version %d", round, changes[i].Done, rows[i].Version)
				}
			}
			if made != 1 {
				t.Errorf("round %d: %d changes were made, want one", round, made)
			}
		}
	})
}

// storeModel is what a store should have.
type storeModel struct {
	*testing.T
	r     *rand.Rand
	store enginekit.Store
	rows  map[string]enginekit.Row
}

// swap makes random changes of some keys. Some have an old version that is wrong.
func (m *storeModel) swap() {
	var changes []enginekit.Change
	keys := m.r.Perm(len(strangeKeys))
	for range 1 + m.r.IntN(4) {
		n := 1 + m.r.IntN(3)
		var c enginekit.Change
		for _, i := range slices.Sorted(slices.Values(keys[:n])) {
			c.Writes = append(c.Writes, m.write(strangeKeys[i]))
		}
		slices.SortFunc(c.Writes, func(a, b enginekit.Write) int { return strings.Compare(a.Key, b.Key) })
		changes, keys = append(changes, c), keys[n:]
	}
	at, early := int64(math.MinInt64), m.r.IntN(8) == 0
	if early {
		at = time.Now().Add(time.Hour).UnixNano()
	}
	now, err := m.store.Swap(m.Context(), at, changes)
	if err != nil || now < time.Now().Add(-time.Minute).UnixNano() || now > time.Now().Add(time.Minute).UnixNano() {
		m.Fatalf("swap %+v: %v, clock %d", changes, err, now)
	}
	for _, c := range changes {
		m.check(c, !early)
	}
}

func (m *storeModel) write(key string) enginekit.Write {
	w := enginekit.Write{Key: key, Old: m.rows[key].Version, Ends: time.Now().Add(time.Hour).UnixNano()}
	if m.r.IntN(6) == 0 {
		w.Old = []int64{0, 1, math.MinInt64, w.Old + 1}[m.r.IntN(4)]
	}
	if m.r.IntN(5) > 0 {
		w.New = int64(m.r.Uint64() | 1)
		w.State = []byte(fmt.Sprint(strings.Repeat("\x00\xff'\\", m.r.IntN(50)), w.New))
	}
	return w
}

// check compares a change with the model, and has the model make it.
func (m *storeModel) check(c enginekit.Change, want bool) {
	for _, w := range c.Writes {
		want = want && w.Old == m.rows[w.Key].Version
	}
	if c.Done != want {
		m.Errorf("%+v: done %t, want %t", c, c.Done, want)
	}
	for _, w := range c.Writes {
		if found := w.Found; !want && found != nil && (found.Version != m.rows[w.Key].Version || !bytes.Equal(found.State, m.rows[w.Key].State)) {
			m.Errorf("%.20q: found %+v, want %+v", w.Key, found, m.rows[w.Key])
		}
		if want && w.New != 0 {
			m.rows[w.Key] = enginekit.Row{Version: w.New, State: w.State}
		}
	}
}

func (m *storeModel) compare() {
	keys := slices.Sorted(maps.Keys(m.rows))
	rows, _, err := m.store.Load(m.Context(), keys)
	if err != nil {
		m.Fatal(err)
	}
	for i, key := range keys {
		if want := m.rows[key]; rows[i].Version != want.Version || !bytes.Equal(rows[i].State, want.State) {
			m.Errorf("%.20q: %+v, want %+v", key, rows[i], want)
		}
	}
	if len(keys) < 10 {
		m.Errorf("only %d keys were written", len(keys))
	}
}
