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
	l := load{engine: New(options), in: newReader(r), revive: revive, known: map[string]bool{}, tables: map[*word.Table]*loadedRows{}}
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

// load is a Load in progress, which alone uses its engine.
type load struct {
	engine  *Engine
	in      *reader
	revive  Revive
	now     int64 // states that are idle now are omitted
	omitted bool  // a state was omitted
	known   map[string]bool
	names   []*loadedName
	layouts [][]loadedColumn
	tables  map[*word.Table]*loadedRows
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
	base  int64    // of the words in the snapshot
	apart bool     // they have a table of their own
	rates []uint64 // the numbers of the saved rates
}

// loadedColumn is a column of a layout in the snapshot.
type loadedColumn struct {
	*loadedName
	width int
}

// loadedRows are the rows of a table in the shard that is being read.
type loadedRows struct {
	layout table.Layout
	data   []uint64
	cells  []loadedCell
}

// loadedCell is a cell of a limit whose states have words.
type loadedCell struct {
	hash   table.Hash
	column *word.Column
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
		l.endShard()
	case kind == recordEnd && l.shard == table.Shards:
		l.end()
	default:
		l.in.damaged("a record of kind %q in shard %d", kind, l.shard)
	}
}

func (l *load) name() {
	n := &loadedName{name: l.in.text(), base: l.in.int64(), apart: l.in.byte() == 1}
	identity, ok := rule.IdentityOf(withoutSuffix(n.name))
	if !ok || l.known[n.name] {
		l.in.damaged("a state of the name %q", n.name)
		return
	}
	n.identity = identity
	if err := l.setCapacity(n, 1); err != nil {
		l.in.refuse("holds a limit that cannot be read: %v", err)
		return
	}
	if n.part.Words == nil || !algorithm.IsRated(n.part.Words) {
		l.makeStates(n, n.part.Words)
	}
	l.known[n.name] = true
	l.names = append(l.names, n)
}

func (l *load) makeStates(n *loadedName, words algorithm.Worder) {
	n.states = l.engine.newStates(n.name, words, n.apart, l.startOf(n.base))
	l.engine.states.Store(n.name, n.states)
	if n.states.hasWords() {
		l.rowsOf(n)
	}
}

// rate reads a rate of a name. The first makes its states.
func (l *load) rate() {
	number, rate := l.in.uint32(), l.in.rate()
	if l.in.err != nil || int64(number) >= int64(len(l.names)) {
		l.in.damaged("a rate of name %d of %d", number, len(l.names))
		return
	}
	n := l.names[number]
	words, ok := algorithm.WithRate(n.part.Words, rate)
	if !ok || !algorithm.IsRated(words) {
		l.in.damaged("words of %q with the rate %v", n.name, rate)
		return
	}
	if n.states == nil {
		l.makeStates(n, words)
	}
	saved, ok := n.states.column.AddRate(rate)
	if !ok || len(n.rates) == algorithm.MaxRates {
		l.in.damaged("too many rates of %q", n.name)
		return
	}
	n.rates = append(n.rates, saved)
	l.rowsOf(n)
}

// rowsOf returns the rows of the table of a name, in its newest layout.
func (l *load) rowsOf(n *loadedName) *loadedRows {
	t := n.states.column.Table()
	r := l.tables[t]
	if r == nil {
		r = &loadedRows{layout: t.Newest()}
		l.tables[t] = r
	}
	if to := t.Newest(); r.layout != to {
		r.convert(to)
	}
	return r
}

func (r *loadedRows) convert(to table.Layout) {
	var data []uint64
	for h, words := range (table.Rows{Layout: r.layout, Data: r.data}).All {
		at := len(data) + 1
		data = append(append(data, uint64(h)), empty[:to.Width()]...)
		to.Convert(r.layout, words[0], words[1:], data[at:])
	}
	r.layout, r.data = to, data
}

// layout reads a layout.
func (l *load) layout() {
	columns, width := make([]loadedColumn, l.in.byte()), 0
	for i := range columns {
		n := l.number()
		columns[i] = loadedColumn{n, int(l.in.byte())}
		width += columns[i].width
		if l.in.err != nil || n.states == nil || !n.states.hasWords() || n.states.column.Table() != columns[0].states.column.Table() ||
			columns[i].width < 1 || columns[i].width > 2 || columns[i].width == 2 && (len(n.rates) == 0 || !n.states.column.Widen()) {
			l.in.damaged("a layout of %d columns", len(columns))
			return
		}
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

// maxBaseAge bounds the age of the base of words. Words reach nine years from it. A load replaces an older base by
// one from which the longest window still fits.
const maxBaseAge = 3 * int64(rule.MaxPeriod)

// startOf returns the instant at which to make states whose words have the base, unless the base is too old.
func (l *load) startOf(base int64) int64 {
	if base < algorithm.AddSaturating(l.now, -maxBaseAge) {
		base = l.now - 2*int64(rule.MaxPeriod)
	}
	return algorithm.AddSaturating(base, word.Slack)
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
	rows := l.rowsOf(columns[0].loadedName)
	var row [1 + table.MaxWidth]uint64
	for ; len(b) > 0; b = b[8*stride:] {
		for i := range row[:stride] {
			row[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		if !l.row(columns, rows, row[:stride]) {
			return
		}
	}
}

// row converts a row of the snapshot to one of the engine, and adds it unless it is idle by now.
func (l *load) row(columns []loadedColumn, rows *loadedRows, saved []uint64) (ok bool) {
	at := len(rows.data)
	rows.data = append(append(rows.data, saved[0]), empty[:rows.layout.Width()]...)
	saved, live := saved[1:], false
	for _, c := range columns {
		column := c.states.column
		w, ok := column.Saved(saved[:c.width], c.base, l.now, c.rates)
		if !ok || !column.PutSaved(w, rows.data[at+1:]) {
			l.in.damaged("words that are no state of %q", c.name)
			return false
		}
		l.omitted = l.omitted || w.First == table.Fresh && saved[0] != table.Fresh
		live = live || w.First != table.Fresh
		saved = saved[c.width:]
	}
	if !live {
		rows.data = rows.data[:at]
	}
	return true
}

var empty [table.MaxWidth]uint64

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
	if algorithm.Idle(n.part.Algorithm, state, l.now) {
		l.omitted = true
		return
	}
	l.addCell(n, h, state)
}

func (l *load) addCell(n *loadedName, h table.Hash, state algorithm.State) {
	c := l.engine.shards[l.shard].cellsOf(n.states, h)
	if c.find(h) != nil {
		l.in.damaged("two states of hash %#x under %q", uint64(h), n.name)
		return
	}
	c.add(h, n.part, state, l.now)
	if n.states.hasWords() {
		rows := l.rowsOf(n)
		rows.cells = append(rows.cells, loadedCell{h, n.states.column})
	}
}

// readNumbers reads a count and that many numbers. It allocates as numbers arrive, because the count may be damaged.
func (l *load) readNumbers() []int64 {
	const atOnce = int64(len(zeros) / 8)
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

// endShard fills the tables of a shard with its words.
func (l *load) endShard() {
	for t, rows := range l.tables {
		var marks []table.Mark
		for _, x := range rows.cells {
			marks = append(marks, table.Mark{Hash: x.hash, At: x.column.Place()})
		}
		if err := t.Fill(l.shard, rows.data, marks); err != nil {
			l.in.damaged("%v", err)
			return
		}
		rows.data, rows.cells = rows.data[:0], rows.cells[:0]
	}
	l.shard++
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
	for t := range l.tables {
		t.Forgotten(lastEviction)
	}
}
