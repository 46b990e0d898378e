package memory

import (
	"encoding/binary"
	"io"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// Revive returns the algorithm of an identity and a capacity. It stands for all limits of that identity: its idle
// states are idle under them too.
type Revive func(identity string, capacity int64) (algorithm.Algorithm, error)

// Load returns an engine with the states that Save wrote. It returns a *[SnapshotError], beside which the engine has the
// states that could be read, or the error of r.
func Load(r io.Reader, options Options, revive Revive) (*Engine, error) {
	l := load{engine: New(options), in: newReader(r), revive: revive}
	if l.header() {
		for !l.ended && l.in.err == nil {
			l.record()
		}
		l.begin()
	}
	l.in.end()
	if left := l.leftOut(); l.in.err == nil && left != nil {
		l.in.err = &SnapshotError{Offset: l.in.offset, Reason: notUnderstood, LeftOut: left}
	}
	if _, ok := l.in.err.(*SnapshotError); !ok && l.in.err != nil {
		return nil, l.in.err
	}
	return l.engine, l.in.err
}

// load is a Load in progress, which alone uses its engine. It unpacks each state and stores it as the engine does, so it
// depends neither on the rates of the engine nor on the layouts of its tables.
type load struct {
	engine  *Engine // nil if the file is no snapshot
	in      *reader
	revive  Revive
	now     int64 // states that are idle now are omitted
	omitted bool  // a state was omitted
	names   []*loadedName
	layouts [][]loadedColumn
	shard   int // the shard of the next words and cells

	ended        bool
	savedUntil   int64 // the clock when the save ended
	lastEviction int64 // the saved engine's

	numbers []int64
}

// header reads the header. If it cannot, the engine stays new.
func (l *load) header() (ok bool) {
	if got := l.in.next(len(magic)); l.in.err == nil && string(got) != magic {
		l.in.refuse("is none: it does not begin with %q", magic)
		l.engine = nil
	}
	if version := l.in.uint32(); version != formatVersion {
		l.in.refuse("is of version %d, and this program reads version %d", version, formatVersion)
	}
	secret := [table.SecretBytes]byte(l.in.next(table.SecretBytes))
	clocks := l.in.clocks()
	if l.in.err != nil {
		return false
	}
	l.engine.seed = table.NewSeed(secret)
	clock := l.engine.clock
	if l.now = clocks.At(clock.MadeAt()); clock.Injected() {
		l.now = clock.Now()
	}
	l.savedUntil, l.lastEviction = l.now, l.now // until the record of the end says otherwise
	return true
}

// record reads one record.
func (l *load) record() {
	switch kind := l.in.byte(); {
	case l.in.err != nil:
	case kind == recordName:
		l.name()
	case kind == recordRate:
		l.rate()
	case kind == recordTable:
		l.layout()
	case kind == recordWords:
		l.words()
	case kind == recordCell:
		l.cell()
	case kind == recordShard && l.shard < table.Shards:
		l.shard++
	case kind == recordEnd && l.shard == table.Shards:
		l.end()
	default:
		l.in.damaged("a record of kind %q in shard %d", kind, l.shard)
	}
}

func (l *load) name() {
	n := &loadedName{name: l.in.text(), base: l.in.int64(), apart: l.in.byte() == 1}
	if l.in.err != nil {
		return
	}
	l.names = append(l.names, n)
	identity, ok := compiled.IdentityOf(withoutSuffix(n.name))
	if !ok {
		n.unread = "no limit has that name"
		return
	}
	n.identity = identity
	if err := l.setCapacity(n, 1); err != nil {
		n.unread = err.Error()
		return
	}
	if n.part.Words == nil || !algorithm.IsRated(n.part.Words) {
		l.addLimit(n, n.part.Words)
	}
}

// rate reads a rate of a name. One that no limit has keeps its number, so that those after it keep theirs.
func (l *load) rate() {
	number, rate := l.in.uint32(), l.in.rate()
	if l.in.err != nil || int64(number) >= int64(len(l.names)) {
		l.in.damaged("a rate of name %d of %d", number, len(l.names))
		return
	}
	n := l.names[number]
	if n.unread != "" {
		return
	}
	words, ok := algorithm.WithRate(n.part.Words, rate)
	if !ok || !algorithm.IsRated(words) || len(n.limits) == algorithm.MaxRates {
		n.limits = append(n.limits, loadedLimit{})
		return
	}
	l.addLimit(n, words)
}

// addLimit adds the limit of a rate. The first makes the states of the name.
func (l *load) addLimit(n *loadedName, words algorithm.Worder) {
	if n.states == nil {
		if _, known := l.engine.states.Load(n.name); known {
			n.unread = "the name comes twice"
			return
		}
		base := algorithm.AddSaturating(l.now, -algorithm.Behind(words))
		n.states = l.engine.newStates(n.name, words, n.apart, base)
		l.engine.states.Store(n.name, n.states)
	}
	if n.states.hasWords() {
		n.states.column.Table().Bound(0) // a snapshot of an engine with a larger cap may bring more keys
		n.limits = append(n.limits, loadedLimit{compiled.NewPart(words, n.name), n.states.limit(words)})
	}
}

// layout reads a layout.
func (l *load) layout() {
	columns, width := make([]loadedColumn, l.in.byte()), 0
	for i := range columns {
		c := loadedColumn{l.number(), int(l.in.byte())}
		if l.in.err != nil || c.width < 1 {
			l.in.damaged("a layout of %d columns", len(columns))
			return
		}
		width += c.width
		columns[i] = c
	}
	if width < 1 || width > table.MaxWidth {
		l.in.damaged("a layout of %d words", width)
		return
	}
	l.layouts = append(l.layouts, columns)
}

// setCapacity makes the part for a capacity.
func (l *load) setCapacity(n *loadedName, capacity int64) error {
	if n.part != nil && n.part.Algorithm.Capacity() == capacity {
		return nil
	}
	a, err := l.revive(n.identity, capacity)
	if err != nil {
		return err
	}
	part := compiled.NewPart(a, n.name)
	n.part = &part
	return nil
}

// number reads the number of a name.
func (l *load) number() *loadedName {
	number := l.in.uint32()
	if int64(number) >= int64(len(l.names)) || l.shard == table.Shards {
		l.in.damaged("a state of name %d of %d in shard %d", number, len(l.names), l.shard)
		return nil
	}
	return l.names[number]
}

func (l *load) words() {
	number, count := l.in.uint32(), l.in.uint32()
	if l.in.err != nil || int64(number) >= int64(len(l.layouts)) || l.shard == table.Shards || count > maxRows {
		l.in.damaged("a record of %d rows", count)
		return
	}
	columns := l.layouts[number]
	stride := 1
	for _, c := range columns {
		stride += c.width
	}
	b := l.in.next(8 * stride * int(count))
	if l.in.err != nil {
		return
	}
	var row [1 + table.MaxWidth]uint64
	for ; len(b) > 0 && l.in.err == nil; b = b[8*stride:] {
		for i := range row[:stride] {
			row[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		l.row(columns, table.Hash(row[0]), row[1:])
	}
}

// row loads the states in the words of a key.
func (l *load) row(columns []loadedColumn, h table.Hash, words []uint64) {
	for _, c := range columns {
		switch limit, state, ok := c.restore(words[:c.width]); {
		case !ok || limit != nil && !l.isHere(h):
			c.leaveOut("its words are of no state of the limit")
		case limit != nil:
			l.put(c.loadedName, &limit.part, limit.Limit, h, state)
		}
		words = words[c.width:]
	}
}

// isHere reports whether a hash belongs to the shard that is being read.
func (l *load) isHere(h table.Hash) bool { return h%table.Shards == table.Hash(l.shard) }

// put keeps a state that is not idle by now, as words of a limit if it fits in them.
func (l *load) put(n *loadedName, part *compiled.Part, limit *word.Limit, h table.Hash, state algorithm.State) {
	if algorithm.Idle(part.Algorithm, state, l.now) {
		l.omitted = true
		return
	}
	if n.states.cells[l.shard].find(h) != nil {
		n.leaveOut("a key has two")
		return
	}
	words, inWords := word.Words{First: table.Elsewhere}, false
	if limit != nil {
		if w, ok := pack(limit, state, l.now); ok {
			words, inWords = w, true
		}
	}
	if n.states.hasWords() {
		n.states.column.Insert(h, words, l.now)
	}
	if !inWords {
		l.engine.shards[l.shard].cellsOf(n.states, h).add(h, part, state, l.now)
	}
}

func (l *load) cell() {
	n, capacity, h := l.number(), l.in.int64(), table.Hash(l.in.int64())
	numbers := l.readNumbers()
	switch {
	case l.in.err != nil:
	case n.states == nil:
		n.leaveOut("no rate of the limit is known")
	default:
		if err := l.setCapacity(n, capacity); err != nil {
			n.leaveOut(err.Error())
			return
		}
		state, ok := n.part.Algorithm.(algorithm.Saver).RestoreState(numbers)
		if !ok || !l.isHere(h) {
			n.leaveOut("its numbers are of no state of the limit")
			return
		}
		l.put(n, n.part, nil, h, state)
	}
}

// readNumbers reads a count and that many numbers. It allocates as numbers arrive, because the count may be damaged.
func (l *load) readNumbers() []int64 {
	const atOnce = maxRows
	l.numbers = l.numbers[:0]
	for left := int64(l.in.uint32()); left > 0 && l.in.err == nil; {
		n := int(min(left, atOnce))
		for b := l.in.next(8 * n); len(b) > 0; b = b[8:] {
			l.numbers = append(l.numbers, int64(binary.LittleEndian.Uint64(b)))
		}
		left -= int64(n)
	}
	return l.numbers
}

// end reads the record of the end.
func (l *load) end() {
	clocks, lastEviction := l.in.clocks(), l.in.int64()
	if l.ended = l.in.err == nil; l.ended {
		l.savedUntil, l.lastEviction = max(l.now, clocks.At(l.engine.clock.MadeAt())), lastEviction
	}
}

// begin sets the clock, and the last eviction of all shards and tables.
func (l *load) begin() {
	if l.omitted {
		l.lastEviction = max(l.lastEviction, l.now)
	}
	if clock := l.engine.clock; !clock.Injected() {
		clock.Begin(l.savedUntil)
	}
	for i := range l.engine.shards {
		l.engine.shards[i].lastEviction = l.lastEviction
	}
	for _, n := range l.names {
		if n.states != nil && n.states.hasWords() {
			t := n.states.column.Table()
			t.Forgotten(l.lastEviction)
			t.Bound(n.states.maxKeys)
		}
	}
}
