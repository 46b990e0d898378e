package memory

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
)

// cellHashes are hashes of keys: almost random ones, and the worst ones, which share the place in a segment, the
// segment, or both.
var cellHashes = map[string]func(i uint64) table.Hash{
	"random":      func(i uint64) table.Hash { return table.Hash(i * 0x9e3779b97f4a7c15) },
	"one place":   func(i uint64) table.Hash { return table.Hash(i) << table.ShardBits },
	"one segment": func(i uint64) table.Hash { return table.Hash(i) << 44 },
	"colliding":   func(i uint64) table.Hash { return table.Hash(i>>3)<<57 | table.Hash(i&7)<<table.ShardBits },
}

// neverIdle is an algorithm for states of any content.
type neverIdle struct{ algorithm.Algorithm }

func (neverIdle) Wait(algorithm.State, int64, int64) int64 { return 1 }
func (neverIdle) Capacity() int64                          { return 1 }

// Each state has all fields of its type, or only those of a log. Removals move other cells.
func TestCellsKeepEveryFieldOfAState(t *testing.T) {
	whole := func(n int64) (state algorithm.State) {
		fields := reflect.ValueOf(&state).Elem()
		for i := range fields.NumField() {
			if f := fields.Field(i); f.Kind() == reflect.Int64 {
				f.SetInt(n + int64(i))
			} else {
				f.Set(reflect.ValueOf(&[]int64{n}))
			}
		}
		return state
	}
	var s shard
	c, p, held := s.cellsOf(&limitStates{}, 0), &compiled.Part{Algorithm: neverIdle{}}, map[table.Hash]algorithm.State{}
	for i := range int64(2000) {
		h, state := cellHashes["random"](uint64(i)), whole(1+100*i)
		if i%3 > 0 || i < 10 {
			state.Unit, state.Converted, state.Promised = 0, 0, 0
		}
		c.add(h, p, state, 0)
		held[h] = state
		if gone := cellHashes["random"](uint64(i / 2)); i%4 == 3 && c.find(gone) != nil {
			c.remove(gone)
			delete(held, gone)
		}
	}
	for h, want := range held {
		if found := c.find(h); found == nil || found.state != want {
			t.Fatalf("hash %#x: got %+v, want %+v", h, found, want)
		}
	}
	if len(held) < 1000 || len(held) != len(c.places) {
		t.Errorf("%d cells are counted as %d", len(held), len(c.places))
	}
}

// TestCellsHoldWhatAMapHolds adds, removes and evicts at random.
func TestCellsHoldWhatAMapHolds(t *testing.T) {
	const most = 900
	p := &compiled.Part{Algorithm: fiveASecond()}
	for name, hash := range cellHashes {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			var s shard
			c, held := s.cellsOf(&limitStates{}, 0), map[table.Hash]int64{} // when it was taken from
			now := int64(0)
			for op := range 40_000 {
				now += random.Int64N(int64(5 * time.Millisecond))
				h := hash(random.Uint64N(most))
				switch found := c.find(h); {
				case found != nil && found.state.A != held[h]:
					t.Fatalf("op %d: hash %#x has the state of %d, want that of %d", op, h, found.state.A, held[h])
				case found != nil && random.IntN(2) == 0:
					c.remove(h)
					delete(held, h)
				case found == nil:
					if taken, ok := held[h]; ok && now < taken+int64(time.Second) {
						t.Fatalf("op %d: hash %#x was forgotten %d ns after it was used", op, h, now-taken)
					}
					state := p.Algorithm.Take(p.Algorithm.Fresh(), now, 1)
					c.add(h, p, state, now)
					held[h] = now
				}
			}
			n := 0
			for x := range c.all {
				if c.find(x.hash) != x {
					t.Errorf("hash %#x is not found where it is", x.hash)
				}
				n++
			}
			if n != len(c.places) || n == 0 || s.evicted == 0 {
				t.Errorf("%d cells are counted as %d; %d forgotten", n, len(c.places), s.evicted)
			}
			if room := len(c.blocks) * blockCells; room > n+2*blockCells {
				t.Errorf("%d cells have room for %d", n, room)
			}
		})
	}
}

// flood takes one unit of each of several new keys under a rule. It returns the largest number of cells that one
// decision examined.
func flood(e *Engine, r *compiled.Rule, first, keys int, between func()) (most int) {
	before := scanned(e)
	for i := range keys {
		between()
		key := string(binary.BigEndian.AppendUint64(nil, uint64(first+i)))
		take(e, r, key)
		after := scanned(e)
		most, before = max(most, after-before), after
	}
	return most
}

// take takes one unit of a key, as package weir does.
func take(e *Engine, r *compiled.Rule, key string) {
	var a algorithm.Answer
	if !e.TakeOne(r, key, 1, &a).Done() {
		_, _, _ = e.Decide(Take, []compiled.Request{{Rule: r, Key: key, Cost: 1}}, 0)
	}
}

func scanned(e *Engine) (n int) {
	for i := range e.shards {
		n += e.shards[i].scanned
	}
	return n
}

// cellRule returns a rule whose states are cells, idle a second later.
func cellRule(name string) *compiled.Rule {
	r := &compiled.Rule{Name: name, Text: "sliding log 5/s", Home: new(Homes)}
	r.Add(fiveASecond(), "sliding log/s")
	return r
}

func fiveASecond() algorithm.Algorithm {
	return algorithm.NewSlidingLog(5, int64(time.Second), 0, false)
}

// engineAt returns an engine at the time of *now.
func engineAt(now *int64, maxKeys int) *Engine {
	return New(Options{Clock: clock.New(func() int64 { return *now }), MaxKeys: maxKeys})
}

// TestNoDecisionLooksAtMoreThan1024Cells grows a table of logs, and evicts them for new ones, below the cap and at
// it.
func TestNoDecisionLooksAtMoreThan1024Cells(t *testing.T) {
	const keys, maxScanned = 100_000, 1024
	for _, bound := range []int{0, keys} {
		t.Run(fmt.Sprint("bound ", bound), func(t *testing.T) {
			now := int64(1_700_000_000_123_456_789)
			e := engineAt(&now, bound)
			r := cellRule("r")
			growing := flood(e, r, 0, keys-keys/20, func() {})
			now += int64(time.Minute)
			forgetting := flood(e, r, keys, keys, func() { now += int64(time.Microsecond) })
			if growing > maxScanned || forgetting > maxScanned || growing == 0 || forgetting == 0 {
				t.Errorf("a decision looked at %d cells while the table grew and %d while it forgot, want 1 to %d", growing, forgetting, maxScanned)
			}
			if dropped := e.Stats().Evicted; dropped < keys/2 {
				t.Errorf("%d of %d idle keys were forgotten, want most", dropped, keys)
			}
		})
	}
}

// Keys come and go: each is idle after a second, in which the same number of other keys comes.
func TestIdleCellsTakeNoMoreThanAsMuchAgain(t *testing.T) {
	const live = 20_000
	now := int64(1_700_000_000_123_456_789)
	e := engineAt(&now, 0)
	r := cellRule("r")
	for i := range 20 {
		flood(e, r, i*live, live, func() { now += int64(time.Second) / live })
		if stats := e.Stats(); stats.Keys > 2*live || stats.Bytes > 2*live*2*cellBytes {
			t.Fatalf("after %d keys, of which %d are in use: %d keys in %d bytes", (i+1)*live, live, stats.Keys, stats.Bytes)
		}
	}
}

// This test takes under other rules until all states of the first one are idle and evicted.
func TestLogsOfUnusedRulesAreEvicted(t *testing.T) {
	const keys = 20_000
	now := int64(1_700_000_000_123_456_789)
	e := engineAt(&now, 0)
	flood(e, cellRule("old"), 0, keys, func() {})
	now += int64(time.Minute)
	flood(e, cellRule("new"), 0, 2*keys, func() {})
	if stats := e.Stats(); stats.Keys > 2*keys+keys/20 {
		t.Errorf("%d keys are left, want %d and few of the %d unused ones", stats.Keys, 2*keys, keys)
	}
}

// One call has many keys of one limit, idle or new, at a cap that is reached.
func TestACallDoesNotEvictItsOwnCells(t *testing.T) {
	now := int64(1_700_000_000_123_456_789)
	e := engineAt(&now, table.Shards)
	r := cellRule("r")
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 3000 {
		now += random.Int64N(int64(2 * time.Second))
		var requests []compiled.Request
		for _, k := range random.Perm(200)[:8] {
			requests = append(requests, compiled.Request{Rule: r, Key: fmt.Sprint("key ", k), Cost: 1})
		}
		if _, _, err := e.Decide(Take, requests, 0); err != nil {
			t.Fatal(err)
		}
		for j := range e.shards {
			for _, c := range e.shards[j].cells { // of the keys, and of the groups of those without room
				if own := c.states.maxKeys > 0; own && len(c.places) > 1 || c.reserved != 0 {
					t.Fatalf("call %d: shard %d has %d cells and %d reserved, want one at most", i, j, len(c.places), c.reserved)
				}
			}
		}
	}
	if e.Stats().Evicted == 0 {
		t.Error("nothing was forgotten")
	}
}

// A new key allocates nothing except a block now and then.
func TestNewKeysOfLogsHardlyAllocate(t *testing.T) {
	const keys = 50_000
	e, r, first := New(Options{Clock: clock.New(func() int64 { return 1e18 })}), cellRule("r"), 0
	all := make([]string, 3*keys)
	for i := range all {
		all[i] = fmt.Sprint("key ", i)
	}
	got := testing.AllocsPerRun(1, func() { // and once to warm up
		for _, key := range all[first : first+keys] {
			take(e, r, key)
		}
		first += keys
	})
	if got > keys/10 {
		t.Errorf("%d new keys: %v allocations, want at most %d", keys, got, keys/10)
	}
}

func TestCellIsSmall(t *testing.T) {
	if cellBytes > 72 {
		t.Errorf("a cell takes %d bytes, want at most 72", cellBytes)
	}
}
