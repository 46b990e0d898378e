package memory

import (
	"encoding/binary"
	"io"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// Revive returns the algorithm of an identity and a capacity. It stands for all limits of that identity: its idle
// states are idle under them too.
type Revive func(identity string, capacity int64) (algorithm.Algorithm, error)

// Load returns an engine with the states that Save wrote. It returns a *[SnapshotError], or the error of r.
func Load(r io.Reader, options Options, revive Revive) (*Engine, error) {
	l := load{engine: New(options), in: newReader(r), revive: revive}
	l.header()
	for !l.ended && l.in.err == nil {
		l.record()
	}
	l.in.end()
	if l.in.err != nil {
		return nil, l.in.err
	}
	return l.engine, nil
}

// load is a Load in progress, which alone uses its engine. It unpacks each state and stores it as the engine does, so it
// depends neither on the rates of the engine nor on the layouts of its tables.
type load struct {
	engine  *Engine
	in      *reader
	revive  Revive
	now     int64 // states that are idle now are omitted
	omitted bool  // a state was omitted
	names   []*loadedName
	layouts [][]loadedColumn
	shard   int // the shard of the next words and cells
	ended   bool

	numbers []int64
}

// loadedName is the name of a limit's states.
type loadedName struct {
	name     string
	identity string
	part     *rule.Part   // with the capacity of the last cell
	states   *limitStates // nil for buckets and cycles until their first rate

	// Used if states fit in words:
	base   int64 // of the words in the snapshot
	apart  bool  // they have a table of their own
	limits []loadedLimit
}

// loadedLimit is a limit that wrote words: that of a saved rate, or the only one.
type loadedLimit struct {
	part rule.Part
	*word.Limit
}

// loadedColumn is a column of a layout in the snapshot.
type loadedColumn struct {
	*loadedName
	width int
}

func (l *load) header() {
	if got := l.in.next(len(magic)); string(got) != magic {
		l.in.refuse("is none: it does not begin with %q", magic)
	}
	if version := l.in.uint32(); version != formatVersion {
		l.in.refuse("is of version %d, and this program reads version %d", version, formatVersion)
	}
	secret := [table.SecretBytes]byte(l.in.next(table.SecretBytes))
	l.engine.seed = table.NewSeed(secret)
	clock := l.engine.clock
	if l.now = l.in.clocks().At(clock.MadeAt()); clock.Injected() {
		l.now = clock.Now()
	}
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
	identity, ok := rule.IdentityOf(withoutSuffix(n.name))
	if !ok {
		l.in.damaged("a state of the name %q", n.name)
		return
	}
	n.identity = identity
	if err := l.setCapacity(n, 1); err != nil {
		l.in.refuse("holds a limit that cannot be read: %v", err)
		return
	}
	if n.part.Words == nil || !algorithm.IsRated(n.part.Words) {
		l.addLimit(n, n.part.Words)
	}
	l.names = append(l.names, n)
}

// rate reads a rate of a name.
func (l *load) rate() {
	number, rate := l.in.uint32(), l.in.rate()
	if l.in.err != nil || int64(number) >= int64(len(l.names)) {
		l.in.damaged("a rate of name %d of %d", number, len(l.names))
		return
	}
	n := l.names[number]
	words, ok := algorithm.WithRate(n.part.Words, rate)
	if !ok || !algorithm.IsRated(words) || len(n.limits) == algorithm.MaxRates {
		l.in.damaged("words of %q with the rate %v, its number %d", n.name, rate, len(n.limits))
		return
	}
	l.addLimit(n, words)
}

// addLimit adds the limit of a rate. The first makes the states of the name.
func (l *load) addLimit(n *loadedName, words algorithm.Worder) {
	if n.states == nil {
		if _, known := l.engine.states.Load(n.name); known {
			l.in.damaged("the name %q twice", n.name)
			return
		}
		base := algorithm.AddSaturating(l.now, -2*int64(rule.MaxPeriod)) // the longest window begins behind it
		n.states = l.engine.newStates(n.name, words, n.apart, base)
		l.engine.states.Store(n.name, n.states)
	}
	if n.states.hasWords() {
		n.states.column.Table().Bound(0) // a snapshot of an engine with a larger cap may bring more keys
		n.limits = append(n.limits, loadedLimit{rule.NewPart(words, n.name), n.states.limit(words)})
	}
}

// layout reads a layout.
func (l *load) layout() {
	columns, width := make([]loadedColumn, l.in.byte()), 0
	for i := range columns {
		c := loadedColumn{l.number(), int(l.in.byte())}
		if l.in.err != nil || len(c.limits) == 0 || c.width < 1 || c.width > c.limits[0].Widest() {
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
	part := rule.NewPart(a, n.name)
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
		limit, state, ok := c.restore(words[:c.width])
		if !ok || h%table.Shards != table.Hash(l.shard) {
			l.in.damaged("words of hash %#x in shard %d that are no state of %q", uint64(h), l.shard, c.name)
			return
		}
		if limit != nil {
			l.put(c.loadedName, &limit.part, limit.Limit, h, state)
		}
		words = words[c.width:]
	}
}

// restore returns the state of saved words, and the limit that wrote it: nil for a new key. ok is false if no limit
// writes such words.
func (c *loadedColumn) restore(words []uint64) (limit *loadedLimit, s algorithm.State, ok bool) {
	if words[0] == table.Fresh {
		return nil, s, words[c.width-1] == 0
	}
	number := 0
	if c.width == 2 {
		number = algorithm.RateNumber(words[0])
	}
	if words[0] >= table.Held || number >= len(c.limits) {
		return nil, s, false
	}
	limit = &c.limits[number]
	s, ok = algorithm.RestoreWords(limit.Words(), words, c.base)
	return limit, s, ok
}

// put keeps a state that is not idle by now, as words of a limit if it fits in them.
func (l *load) put(n *loadedName, part *rule.Part, limit *word.Limit, h table.Hash, state algorithm.State) {
	if algorithm.Idle(part.Algorithm, state, l.now) {
		l.omitted = true
		return
	}
	if n.states.cells[l.shard].find(h) != nil {
		l.in.damaged("two states of hash %#x under %q", uint64(h), n.name)
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
	if l.in.err == nil && n.states == nil {
		l.in.damaged("a state of %q, of which no rate is known", n.name)
	}
	if l.in.err != nil {
		return
	}
	if err := l.setCapacity(n, capacity); err != nil {
		l.in.damaged("%v", err)
		return
	}
	state, ok := n.part.Algorithm.(algorithm.Saver).RestoreState(numbers)
	if !ok || h%table.Shards != table.Hash(l.shard) {
		l.in.damaged("a state of hash %#x in shard %d that is none of %q", uint64(h), l.shard, n.name)
		return
	}
	l.put(n, n.part, nil, h, state)
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

// end sets the clock, and the last eviction of all shards and tables.
func (l *load) end() {
	l.ended = true
	clock := l.engine.clock
	now := l.in.clocks().At(clock.MadeAt())
	lastEviction := l.in.int64()
	if l.omitted {
		lastEviction = max(lastEviction, l.now)
	}
	if !clock.Injected() {
		clock.Begin(max(now, l.now))
	}
	for i := range l.engine.shards {
		l.engine.shards[i].lastEviction = lastEviction
	}
	for _, n := range l.names {
		if n.states != nil && n.states.hasWords() {
			t := n.states.column.Table()
			t.Forgotten(lastEviction)
			t.Bound(n.states.maxKeys)
		}
	}
}
