package memory

import (
	"encoding/binary"
	"fmt"
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
	l := load{engine: New(options), in: newReader(r), revive: revive, known: map[string]bool{}}
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
	names   []loadedName
	shard   int // the shard of the next words and cells
	ended   bool

	numbers []int64
}

// loadedName is the name of a limit's states.
type loadedName struct {
	name     string
	identity string
	part     *rule.Part // with the capacity of the last cell
	states   *limitStates

	// Used if states fit in words:
	base  int64        // of the words in the snapshot
	pairs []table.Pair // of the shard
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
	n := loadedName{name: l.in.text(), base: l.in.int64()}
	rate := l.in.rate()
	identity, ok := rule.IdentityOf(withoutSuffix(n.name))
	if !ok || l.known[n.name] {
		l.in.damaged("a state of the name %q", n.name)
		return
	}
	n.identity = identity
	if err := l.setCapacity(&n, 1); err != nil {
		l.in.refuse("holds a limit that cannot be read: %v", err)
		return
	}
	words, ok := algorithm.WithRate(n.part.Words, rate)
	if !ok {
		l.in.damaged("words of %q with the rate %v", n.name, rate)
		return
	}
	n.states = l.engine.newStates(n.name, words, l.startOf(n.base))
	l.engine.states.Store(n.name, n.states)
	l.known[n.name] = true
	l.names = append(l.names, n)
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
	return &l.names[number]
}

func (l *load) words() {
	n, count := l.number(), l.in.uint32()
	if l.in.err != nil || !n.states.hasWords() || count > maxPairs {
		l.in.damaged("a record of %d words", count)
		return
	}
	b := l.in.next(pairBytes * int(count))
	if l.in.err != nil {
		return
	}
	for ; len(b) > 0; b = b[pairBytes:] {
		word, ok := l.word(n, binary.LittleEndian.Uint64(b[8:]))
		if !ok {
			l.in.damaged("a word that is no state of %q", n.name)
			return
		}
		if word != table.Fresh {
			n.pairs = append(n.pairs, table.Pair{Hash: table.Hash(binary.LittleEndian.Uint64(b)), Word: word})
		}
	}
}

// word converts a word of the snapshot to one of the engine: Fresh if it is idle by now. ok is false if no state has
// that word.
func (l *load) word(n *loadedName, word uint64) (_ uint64, ok bool) {
	words := n.states.Writer
	state := words.Unpack(word, n.base)
	if again, ok := words.Pack(state, n.base); !ok || again != word || word == table.Fresh {
		return 0, false
	}
	if n.base == n.states.Base {
		if words.IdleWord(word, n.base, l.now) {
			l.omitted = true
			return table.Fresh, true
		}
		return word, true
	}
	if algorithm.Idle(words, state, l.now) {
		l.omitted = true
		return table.Fresh, true
	}
	return words.Pack(state, n.states.Base)
}

func (l *load) cell() {
	n, capacity, h := l.number(), l.in.int64(), table.Hash(l.in.int64())
	numbers := l.readNumbers()
	if l.in.err != nil {
		return
	}
	if err := l.setCapacity(n, capacity); err != nil {
		l.in.damaged("%v", err)
		return
	}
	x := cell{hash: h, part: n.part}
	var ok bool
	if x.state, ok = n.part.Algorithm.(algorithm.Saver).RestoreState(numbers); !ok || h%table.Shards != table.Hash(l.shard) {
		l.in.damaged("a state of hash %#x in shard %d that is none of %q", uint64(h), l.shard, n.name)
		return
	}
	if x.idle(l.now) {
		l.omitted = true
		return
	}
	l.addCell(n, &x)
}

func (l *load) addCell(n *loadedName, x *cell) {
	c := l.engine.shards[l.shard].cellsOf(n.states, x.hash)
	if c.find(x.hash) != nil {
		l.in.damaged("two states of hash %#x under %q", uint64(x.hash), n.name)
		return
	}
	c.add(x.hash, x.part, x.state, l.now)
	if n.states.hasWords() {
		n.pairs = append(n.pairs, table.Pair{Hash: x.hash, Word: table.Elsewhere})
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
	for i := range l.names {
		n := &l.names[i]
		if !n.states.hasWords() {
			continue
		}
		if err := n.states.Words.Fill(l.shard, n.pairs); err != nil {
			l.in.damaged("%v", fmt.Errorf("%q: %w", n.name, err))
			return
		}
		n.pairs = n.pairs[:0]
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
	for _, n := range l.names {
		if n.states.hasWords() {
			n.states.Words.Forgotten(lastEviction)
		}
	}
}
