package weir

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// loading is a LoadMemory on its way. Its engine is nobody else's yet.
type loading struct {
	memory *Memory
	in     *snapshotReader
	now    int64 // what is idle now is left out
	known  map[string]bool
	names  []loadedName
	shard  int // what comes has hashes with these low bits
	swept  bool
	ended  bool

	numbers []int64
}

// loadedName is one limit of a rule.
type loadedName struct {
	state    string
	identity string
	part     *rule.Part // of the capacity that came last
	table    *limitTable

	// Where states fit words:
	base  int64        // of the words in the snapshot
	pairs []table.Pair // of the shard
}

func (l *loading) header() {
	if magic := l.in.next(len(snapshotMagic)); string(magic) != snapshotMagic {
		l.in.refuse("is none: it does not begin with %q", snapshotMagic)
	}
	if version := l.in.uint32(); version != snapshotVersion {
		l.in.refuse("is of version %d, and this program reads version %d", version, snapshotVersion)
	}
	secret := [table.SecretBytes]byte(l.in.next(table.SecretBytes))
	l.memory.seed = table.NewSeed(secret)
	clock := l.memory.clock
	if l.now = l.in.clocks().At(clock.MadeAt()); clock.Injected() {
		l.now = clock.Now()
	}
}

// record reads one record.
func (l *loading) record() {
	switch kind := l.in.byte(); {
	case l.in.err != nil:
	case kind == recordName:
		l.name()
	case kind == recordWords:
		l.words()
	case kind == recordCell:
		l.cell()
	case kind == recordShard && l.shard < shardCount:
		l.endShard()
	case kind == recordEnd && l.shard == shardCount:
		l.end()
	default:
		l.in.damaged("a record of kind %q in shard %d", kind, l.shard)
	}
}

func (l *loading) name() {
	state, base := l.in.text(), l.in.int64()
	n := loadedName{state: state, base: base}
	ruleName, rest, _ := strings.Cut(state, "\x00")
	identity, ordinal, _ := strings.Cut(rest, "\x00")
	n.identity = identity
	if checkName(ruleName) != nil || !isOrdinal(ownOrdinal(ordinal)) || l.known[state] {
		l.in.damaged("a state of the name %q", state)
		return
	}
	if err := n.setCapacity(1); err != nil {
		l.in.refuse("holds a limit that cannot be read: %v", err)
		return
	}
	n.table = l.memory.newLimitTable(state, n.part.Words, l.tableStart(base))
	l.memory.tables.Store(state, n.table)
	l.known[state] = true
	l.names = append(l.names, n)
}

// setCapacity makes the part of a capacity.
func (n *loadedName) setCapacity(capacity int64) error {
	if n.part != nil && n.part.Algorithm.Capacity() == capacity {
		return nil
	}
	limit, err := limitOf(n.identity, capacity)
	if err != nil {
		return err
	}
	part := rule.NewPart(limit.algorithm(), n.state)
	n.part = &part
	return nil
}

// rebaseAfter is how old a base may be. It is moved on long before the nine
// years of a word are over, and to a base from which windows that matter still
// fit.
const rebaseAfter = 3 * int64(MaxPeriod)

// tableStart is the instant to make a table at, for a base: the same, unless it
// is old.
func (l *loading) tableStart(base int64) int64 {
	if base < saturatingAdd(l.now, -rebaseAfter) {
		base = l.now - 2*int64(MaxPeriod)
	}
	return saturatingAdd(base, word.Slack)
}

// number is the name that a record belongs to.
func (l *loading) number() *loadedName {
	number := l.in.uint32()
	if int64(number) >= int64(len(l.names)) || l.shard == shardCount {
		l.in.damaged("a state of name %d of %d in shard %d", number, len(l.names), l.shard)
		return nil
	}
	return &l.names[number]
}

func (l *loading) words() {
	n, count := l.number(), l.in.uint32()
	if l.in.err != nil || !n.table.hasWords() || count > mostPairs {
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
			l.in.damaged("a word that is no state of %q", n.state)
			return
		}
		if word != table.Fresh {
			n.pairs = append(n.pairs, table.Pair{Hash: table.Hash(binary.LittleEndian.Uint64(b)), Word: word})
		}
	}
}

// word is a word of the snapshot as one of the table, Fresh if it is idle by
// now. It is not ok if no state has such a word.
func (l *loading) word(n *loadedName, word uint64) (_ uint64, ok bool) {
	words := n.part.Words
	state := words.Unpack(word, n.base)
	if again, ok := words.Pack(state, n.base); !ok || again != word || word == table.Fresh {
		return 0, false
	}
	if n.base == n.table.Base {
		if words.IdleWord(word, n.base, l.now) {
			l.swept = true
			return table.Fresh, true
		}
		return word, true
	}
	if algorithm.Idle(words, state, l.now) {
		l.swept = true
		return table.Fresh, true
	}
	return words.Pack(state, n.table.Base)
}

func (l *loading) cell() {
	n, capacity, h := l.number(), l.in.int64(), table.Hash(l.in.int64())
	numbers := l.readNumbers()
	if l.in.err != nil {
		return
	}
	if err := n.setCapacity(capacity); err != nil {
		l.in.damaged("%v", err)
		return
	}
	x := cell{hash: h, part: n.part}
	var ok bool
	if x.state, ok = n.part.Algorithm.(algorithm.Saver).RestoreState(numbers); !ok || h%shardCount != table.Hash(l.shard) {
		l.in.damaged("a state of hash %#x in shard %d that is none of %q", uint64(h), l.shard, n.state)
		return
	}
	if x.idle(l.now) {
		l.swept = true
		return
	}
	l.addCell(n, &x)
}

func (l *loading) addCell(n *loadedName, x *cell) {
	c := l.memory.shards[l.shard].cellsOf(n.table, x.hash)
	if c.find(x.hash) != nil {
		l.in.damaged("two states of hash %#x under %q", uint64(x.hash), n.state)
		return
	}
	c.add(x.hash, x.part, x.state, l.now)
	if n.table.hasWords() {
		n.pairs = append(n.pairs, table.Pair{Hash: x.hash, Word: table.Elsewhere})
	}
}

// readNumbers believes a count only as far as numbers come.
func (l *loading) readNumbers() []int64 {
	const most = int64(len(zeros) / 8)
	l.numbers = l.numbers[:0]
	for left := int64(l.in.uint32()); left > 0 && l.in.err == nil; {
		n := int(min(left, most))
		for b := l.in.next(8 * n); len(b) > 0; b = b[8:] {
			l.numbers = append(l.numbers, int64(binary.LittleEndian.Uint64(b)))
		}
		left -= int64(n)
	}
	return l.numbers
}

// endShard fills the tables of a shard.
func (l *loading) endShard() {
	for i := range l.names {
		n := &l.names[i]
		if !n.table.hasWords() {
			continue
		}
		if err := n.table.Words.Fill(l.shard, n.pairs); err != nil {
			l.in.damaged("%v", fmt.Errorf("%q: %w", n.state, err))
			return
		}
		n.pairs = n.pairs[:0]
	}
	l.shard++
}

// end sets the clock, and tells everyone until when states were forgotten.
func (l *loading) end() {
	l.ended = true
	clock := l.memory.clock
	now := l.in.clocks().At(clock.MadeAt())
	swept := l.in.int64()
	if l.swept {
		swept = max(swept, l.now)
	}
	if !clock.Injected() {
		clock.Begin(max(now, l.now))
	}
	for i := range l.memory.shards {
		l.memory.shards[i].swept = swept
	}
	for _, n := range l.names {
		if n.table.hasWords() {
			n.table.Words.Forgotten(swept)
		}
	}
}
