package override

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
)

// losing is a Redis that loses its data, with daemons that poll when the test says so.
type losing struct {
	*testing.T
	server  *redistest.Server
	daemons []*Table
	log     bytes.Buffer
	engine  weir.Engine
}

func newLosing(t *testing.T, daemons int) *losing {
	l := &losing{T: t, server: redistest.Start(t), engine: weir.NewMemory(weir.MemoryOptions{})}
	for range daemons {
		l.start()
	}
	return l
}

func (l *losing) start() *Table {
	table, end, err := OpenRedis("redis://"+l.server.Addr, slog.New(slog.NewTextHandler(&l.log, nil)))
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(end)
	l.daemons = append(l.daemons, table)
	return table
}

func (l *losing) poll(daemons ...*Table) {
	l.Helper()
	for _, d := range daemons {
		if err := d.refresh(l.Context()); err != nil {
			l.Fatal(err)
		}
	}
}

// settle lets every daemon restore what it knows and read what the others know.
func (l *losing) settle() {
	l.poll(l.daemons...)
	l.poll(l.daemons...)
}

// want checks that all daemons have these entries: KEY=LIMIT, in order.
func (l *losing) want(entries ...string) {
	l.Helper()
	for i, d := range l.daemons {
		var got []string
		for _, e := range d.Entries() {
			got = append(got, e.Key+"="+e.Limit)
		}
		if fmt.Sprint(got) != fmt.Sprint(entries) {
			l.Fatalf("daemon %d has %v, want %v", i, got, entries)
		}
	}
}

func TestAChangeRightAfterALossOfTheDataOfRedisLosesNoEntry(t *testing.T) {
	for name, change := range map[string]func(l *losing){
		"a block": func(l *losing) { set(l, l.daemons[0], l.engine, "", "z", Block) },
		"an end": func(l *losing) {
			if _, err := l.daemons[0].Remove(l.Context(), "", "z", false); err != nil {
				l.Fatal(err)
			}
		},
		"a new daemon": func(l *losing) {
			if _, err := l.start().Secret(l.Context()); err != nil {
				l.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, first := range []int{0, 1} { // which daemon polls first
				l := newLosing(t, 2)
				for _, key := range []string{"keep1", "keep2", "z"} {
					set(t, l.daemons[0], l.engine, "", key, Block)
				}
				l.settle()
				l.server.Do("FLUSHALL")
				change(l)
				l.poll(l.daemons[first])
				l.settle()
				want := []string{"keep1=deny all", "keep2=deny all", "z=deny all"}
				if name == "an end" {
					want = want[:2]
				}
				l.want(want...)
				if !strings.Contains(l.log.String(), "Redis had lost changes of overrides, and has them again") {
					t.Errorf("the log does not name the loss: %s", &l.log)
				}
			}
		})
	}
}

// A change that a daemon has made is in force from its answer on, also if Redis loses it before any daemon has polled.
func TestALossRightAfterAChangeLosesNoEntry(t *testing.T) {
	l := newLosing(t, 2)
	set(t, l.daemons[0], l.engine, "", "old", Block)
	l.settle()
	set(t, l.daemons[0], l.engine, "", "attacker", Block)
	l.server.Do("FLUSHALL")
	set(t, l.daemons[1], l.engine, "", "other", Block)
	l.poll(l.daemons[1]) // which knows nothing of the attacker
	l.settle()
	l.want("attacker=deny all", "old=deny all", "other=deny all")
}

// A Redis that restarts from an older file, or fails over to a replica that lags, has the version that all daemons know.
func TestALossOfTheLastChangeAloneLosesNoEntry(t *testing.T) {
	l := newLosing(t, 2)
	set(t, l.daemons[0], l.engine, "", "old", Block)
	l.settle()
	saved := l.server.Do("DUMP", "weir:overrides").(string)
	set(t, l.daemons[0], l.engine, "", "attacker", Block)
	l.server.Do("RESTORE", "weir:overrides", "0", saved, "REPLACE")
	l.settle()
	l.want("attacker=deny all", "old=deny all")
}

// Daemons agree on the last change of each key, whatever Redis loses between their polls: all of its data, or the last
// changes, as after a restart from an older file or a failover.
func TestNoLossOfTheDataOfRedisUndoesAChange(t *testing.T) {
	l := newLosing(t, 3)
	for seed := range randtest.Seeds(t, 40, 10) {
		r := rand.New(rand.NewPCG(seed, 0))
		limits, saved := map[string]string{}, any(nil)
		for step := range 30 {
			d, key := l.daemons[r.IntN(3)], fmt.Sprint(seed, "-", r.IntN(4))
			switch r.IntN(8) {
			case 0, 1:
				limit := fmt.Sprintf("fixed window %d/h", 10+step)
				set(t, d, l.engine, "", key, limit)
				limits[key] = limit
			case 2:
				if _, err := d.Remove(t.Context(), "", key, false); err == nil {
					delete(limits, key)
				} else if err != ErrUnknown {
					t.Fatal(err)
				}
			case 3:
				l.server.Do("FLUSHALL")
			case 4:
				saved = l.server.Do("DUMP", "weir:overrides")
			case 5:
				if saved, ok := saved.(string); ok {
					l.server.Do("RESTORE", "weir:overrides", "0", saved, "REPLACE")
				}
			default:
				l.poll(d)
			}
		}
		l.settle()
		var want []string
		for i := range 4 {
			if key := fmt.Sprint(seed, "-", i); limits[key] != "" {
				want = append(want, key+"="+limits[key])
			}
		}
		l.want(want...)
		for key := range limits {
			if _, err := l.daemons[0].Remove(t.Context(), "", key, false); err != nil {
				t.Fatal(err)
			}
		}
		l.settle()
	}
}

// A daemon that could not read for long knows less than the hash.
func TestADaemonThatWasAwayRestoresNothingThatOthersRemoved(t *testing.T) {
	l := newLosing(t, 2)
	set(t, l.daemons[0], l.engine, "", "a", Block)
	set(t, l.daemons[0], l.engine, "", "b", Block)
	l.settle()
	if _, err := l.daemons[0].Remove(t.Context(), "", "a", false); err != nil {
		t.Fatal(err)
	}
	l.server.Do("HDEL", "weir:overrides", `["","a",false]`) // as after keptFor
	l.daemons[1].store.(*redis).readAt = time.Now().Add(-keptFor)
	l.poll(l.daemons[1])
	l.want("b=deny all")
}

// The bound counts neither removed entries nor other fields.
func TestAnEntryHasRoomOnceAnotherIsRemoved(t *testing.T) {
	l := newLosing(t, 2)
	fields := []string{"HSET", "weir:overrides", "version", "7", "secret", "s"}
	for i := range MaxEntries {
		name, _ := target{key: fmt.Sprint(i)}.field()
		fields = append(fields, name, fmt.Sprintf(`7 {"key":"%d","limit":"deny all","until":%q}`, i, time.Now().Add(time.Hour).Format(time.RFC3339)))
	}
	l.server.Do(fields...)
	more := Entry{Key: "more", Limit: Block, Until: time.Now().Add(time.Hour)}
	if _, err := l.daemons[1].Set(t.Context(), &more, l.engine); err != errFull {
		t.Errorf("an entry beyond %d: got %v", MaxEntries, err)
	}
	l.settle()
	if _, err := l.daemons[0].Remove(t.Context(), "", "5", false); err != nil {
		t.Fatal(err)
	}
	l.settle()
	if _, err := l.daemons[1].Set(t.Context(), &more, l.engine); err != nil {
		t.Errorf("after one was removed: %v", err)
	}
	if got := len(l.daemons[1].Entries()); got != MaxEntries {
		t.Errorf("%d entries, want %d", got, MaxEntries)
	}
}
