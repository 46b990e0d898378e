package redislimit

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// countingSender runs a copy of the script that counts what it does: the numbers that it packs and unpacks, which are
// those of its entries, and the bytes of the strings that it makes.
type countingSender struct {
	server *redistest.Server
	source string

	mu             sync.Mutex
	entries, bytes float64 // the most of a call
	calls          int
}

func newCountingSender(t *testing.T, server *redistest.Server) *countingSender {
	t.Helper()
	const count = `
local counted, made = 0, 0
local real = { struct = struct, string = string, table = table }
local function text(s) made = made + #s return s end
local struct = {
  pack = function(...) counted = counted + 1 return text(real.struct.pack(...)) end,
  unpack = function(...) counted = counted + 1 return real.struct.unpack(...) end,
}
local string = setmetatable({
  sub = function(...) return text(real.string.sub(...)) end,
  rep = function(...) return text(real.string.rep(...)) end,
}, { __index = real.string })
local table = setmetatable({
  concat = function(...) return text(real.table.concat(...)) end,
}, { __index = real.table })
local function main()
%s
end
local reply = main()
return reply .. real.struct.pack('<dd', counted, made)
`
	return &countingSender{server: server, source: fmt.Sprintf(count, wire.Script().Source)}
}

func (s *countingSender) Send(_ context.Context, command ...string) (string, error) {
	if command[0] == "EVALSHA" {
		command[0], command[1] = "EVAL", s.source
	}
	reply, err := s.server.Ask(command...)
	if err != nil {
		return "", senderError{err}
	}
	text, _ := reply.(string)
	if len(text) < 16 {
		return text, nil
	}
	counts := text[len(text)-16:]
	number := func(b string) float64 { return math.Float64frombits(binary.LittleEndian.Uint64([]byte(b))) }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.bytes = max(s.entries, number(counts[:8])), max(s.bytes, number(counts[8:]))
	s.calls++
	return text[:len(text)-16], nil
}

// most returns the most work of a call since the last one, and the number of calls.
func (s *countingSender) most() (entries, bytes float64, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, bytes, calls = s.entries, s.bytes, s.calls
	s.entries, s.bytes, s.calls = 0, 0, 0
	return entries, bytes, calls
}

type senderError struct{ error }

func (senderError) RedisError() {}

// What the script's own work takes at least, measured on the machine of docs/develop/redis.md with the machine to itself: a
// number packed or unpacked with its place in a list, and a KB of a new string, which Lua copies and hashes.
const (
	microsOfEntry = 0.165
	microsOfKB    = 1.2
)

// A call does a bounded amount of work, whatever the states hold and the callers ask. The counts do not depend on the
// machine. Reading the states comes on top; it is bounded by their size (TestACallIsBoundedByTheEntriesThatItReads).
func TestACallDoesABoundedAmountOfWork(t *testing.T) {
	const most = 1000 // us
	server := redistest.Start(t)
	counting := newCountingSender(t, server)
	engine, err := NewWith(counting, Options{Clock: func() int64 { return fullAt * 1000 }})
	if err != nil {
		t.Fatal(err)
	}
	long, slots := fmt.Sprintf("%d/1h", MaxLog), fmt.Sprintf("concurrency %d lease 1h", MaxSlots)
	for _, tt := range []struct {
		name string
		rule string
		full full
		ask  func(e *Engine, rule *weir.Rule)
	}{
		{"release many leases of a full set", slots, full{form: 2, extra: 8, units: 1}, each(100, -1)},
		{"release many leases of several units", slots, full{form: 4, extra: 8, units: 2}, each(100, -2)},
		{"release a part of leases of several units", slots, full{form: 4, extra: 8, units: 2}, each(100, -1)},
		{"release leases that nothing holds", slots, full{form: 4, extra: 8, units: 1}, strangers(20)},
		{"release more than one lease", slots, full{form: 2, extra: 8, units: 1, same: true}, each(40, -40)},
		{"take and release among leases of several lengths", slots, full{form: 5, extra: 8, units: 1, short: 100}, func(e *Engine, rule *weir.Rule) {
			each(40, -1)(e, rule)
			each(40, 1)(e, rule)
		}},
		{"renew leases of several lengths", slots, full{form: 5, extra: 8, units: 1, short: 100}, renewals(40)},
		{"give back to a log of mixed costs", "sliding log " + long, full{form: 4, units: 2}, each(30, -3)},
		{"give back to a gate of mixed costs", "rate gate " + long, full{form: 4, units: 2}, each(30, -3)},
		{"give back to a gate half of which has left", "rate gate " + long, full{form: 4, units: 2, left: true}, each(30, -3)},
		{"undo an old take in a log of mixed costs", "sliding log " + long, full{form: 4, units: 2}, undoOf(MaxLog/4, MaxLog/2)},
		{"undo a recent take in a log of mixed costs", "sliding log " + long, full{form: 4, units: 2}, undoOf(MaxLog/2-900, MaxLog/2)},
		{"undo a take in a log of cost 1", "sliding log " + long, full{form: 2, units: 1}, undoOf(MaxLog/2, MaxLog)},
		{"record a large cost on a log of cost 1", "sliding log " + long, full{form: 2, units: 1}, each(3, 400)},
		{"record a cost of two on a short log of cost 1", "sliding log 2000/1h", full{form: 2, units: 1, short: 1500}, each(3, 2)},
	} {
		rule := mustRule(t, "r="+tt.rule)
		p := onePart(t, engine, rule.For("k", 1))
		server.Do("SET", p.Key, tt.full.value(p.Limit))
		counting.most()
		tt.ask(engine, rule)
		entries, bytes, calls := counting.most()
		micros := entries*microsOfEntry + bytes/1024*microsOfKB
		t.Logf("%s: %.0f entries and %.0f KB in the largest of %d calls: %.0f us", tt.name, entries, bytes/1024, calls, micros)
		if micros > most || calls == 0 {
			t.Errorf("%s: %.0f entries and %.0f KB in a call are %.0f us, want at most %d", tt.name, entries, bytes/1024, micros, most)
		}
	}
}

// A TakeUpTo searches for the number that fits, in 30 steps of each limit, so a call makes few of them.
func TestACallOfTakesUpToDoesABoundedAmountOfWork(t *testing.T) {
	const most, callers = 1500, 128
	counting := newCountingSender(t, redistest.Start(t))
	engine, err := NewWith(counting, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, limits := range []int{1, 3, 8} {
		var windows []weir.Limit
		for i := range limits {
			windows = append(windows, weir.SlidingWindow{Rate: weir.Per(MaxCount, time.Hour+time.Duration(i)*time.Second)})
		}
		rule, err := weir.NewRule(fmt.Sprint("r", limits), windows...)
		if err != nil {
			t.Fatal(err)
		}
		var callersOf []*calls.Submission
		for i := range callers {
			q := rule.For(fmt.Sprint("k", i), 333)
			if d, err := engine.Take(t.Context(), q); err != nil || !d.Allowed {
				t.Fatalf("Take: %+v, %v", d, err)
			}
			q.Cost = 1
			parts, at, err := engine.parts(nil, []weir.Request{q}, 0)
			if err != nil {
				t.Fatal(err)
			}
			s := calls.NewSubmission()
			s.One[0] = asking(wire.OpTake, MaxCount, parts, at)
			s.Decisions = s.One[:]
			callersOf = append(callersOf, s)
		}
		counting.most()
		engine.calls.Run(callersOf)
		entries, bytes, calls := counting.most()
		micros := entries*microsOfEntry + bytes/1024*microsOfKB
		t.Logf("%d limits: %.0f numbers and %.0f KB in the largest of %d calls: %.0f us", limits, entries, bytes/1024, calls, micros)
		if micros > most || calls < 2 {
			t.Errorf("%d limits: %.0f numbers and %.0f KB in the largest of %d calls are %.0f us, want at most %d in several calls", limits, entries, bytes/1024, calls, micros, most)
		}
		for i, s := range callersOf {
			if d := &s.One[0]; s.Err != nil || d.Err != nil || d.Count() != MaxCount-333 {
				t.Fatalf("%d limits: caller %d took its cost %d times (%v, %v), want the %d that were left", limits, i, d.Count(), s.Err, d.Err, MaxCount-333)
			}
		}
	}
}

// fullAt is the time at which the states are full, in us.
const fullAt = 1_700_000_000_000_000

// full describes a state as full as its limit allows, in the stored form of script/logs.lua.
type full struct {
	form  int  // 2: LONG, 4: MIDDLE, 5: WIDE
	extra int  // bytes of an entry that name its holder
	units int  // of an entry
	same  bool // all entries have one holder
	left  bool // half of the entries no longer count
	short int  // how many entries are missing
}

func (f full) value(l *stored.Limit) string {
	n := int(l.Capacity)/f.units - f.short
	began := float64(fullAt - int64(n) - 10)
	if f.left {
		began = float64(fullAt-l.Period) - float64(n)/2
	}
	value, own, base := []byte{stored.FormatByte + byte(f.form)}, 0.0, began
	if f.extra > 0 && f.form != 5 {
		own = float64(l.Period)
	}
	if f.form == 5 {
		base = 0
	}
	value = stored.Doubles(value, fullAt+2*float64(l.Period), began, base, 0, own)
	for i := range n {
		total := uint64(f.units * (i + 1))
		switch f.form {
		case 2:
			value = append(value, little(uint64(i), 6)...)
		case 4:
			value = append(append(value, little(uint64(i), 6)...), little(total, 4)...)
		case 5:
			value = stored.Doubles(value, fullAt+1e9+float64(i), float64(total))
		}
		holder := i + 1
		if f.same {
			holder = 1
		}
		if f.extra > 0 {
			value = append(value, little(uint64(holder), 8)...)
		}
	}
	return string(value)
}

func little(n uint64, bytes int) []byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return b[:bytes]
}

func onePart(t *testing.T, e *Engine, q weir.Request) wire.Part {
	t.Helper()
	parts, _, err := e.parts(nil, []weir.Request{q}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return parts[0]
}

// together sends decisions that may share a call, and panics at an error, so that a state that the script cannot read is
// noticed.
func together(e *Engine, decisions []wire.Decision) {
	s := calls.NewSubmission(decisions...)
	if err := e.calls.Ask(context.Background(), s); err != nil {
		panic(err)
	}
	for i := range decisions {
		if err := decisions[i].Err; err != nil {
			panic(err)
		}
	}
}

// each records a cost under n identities at once.
func each(n int, cost int64) func(*Engine, *weir.Rule) { return ofEach(wire.OpRecord, 1, n, cost) }

func strangers(n int) func(*Engine, *weir.Rule) { return ofEach(wire.OpRecord, 1<<40, n, -1) }

func renewals(n int) func(*Engine, *weir.Rule) { return ofEach(wire.OpRenew, 1, n, 1) }

func ofEach(o wire.Op, first uint64, n int, cost int64) func(*Engine, *weir.Rule) {
	return func(e *Engine, rule *weir.Rule) {
		decisions := make([]wire.Decision, n)
		for i := range decisions {
			parts, _, _ := e.parts(nil, []weir.Request{rule.For("k", cost)}, first+uint64(i)*7)
			decisions[i] = wire.Decision{Op: o, Parts: parts}
		}
		together(e, decisions)
	}
}

// undoOf undoes the take of the i-th of n entries.
func undoOf(i, n int64) func(*Engine, *weir.Rule) {
	return func(e *Engine, rule *weir.Rule) {
		parts, _, _ := e.parts(nil, []weir.Request{rule.For("k", 1)}, 0)
		together(e, []wire.Decision{{Op: wire.OpUndo, Parts: parts, Now: fullAt - n - 10 + i}})
	}
}
