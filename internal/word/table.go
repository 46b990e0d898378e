package word

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Table holds the states of many keys as words: one entry for each key, with a column for each limit. A Limit decides
// on its column, and Take on several columns and keys at once, without a lock. Other operations borrow the entry under the lock
// of the key's shard; its first word then reads table.Elsewhere, which sends every other caller to that lock. So does a
// column whose word reads table.Elsewhere, because its state does not fit in its words.
type Table struct {
	*table.Table
	mu      sync.Mutex // of columns and layouts
	columns []*Column
	layouts [table.MaxWidth + 1]atomic.Pointer[layout] // by number; each is wider than the one before
	newest  atomic.Pointer[layout]
	loans   [table.Shards]atomic.Uint64 // number of loans so far
}

// idleGrace is how long an idle key stays in its table, so that a key used again soon need not be inserted again.
const idleGrace = int64(time.Second)

// NewTable returns a table without columns. A maxKeys of 0 means no bound.
func NewTable(maxKeys int) *Table {
	t := &Table{}
	first := &layout{}
	t.newest.Store(first)
	t.layouts[0].Store(first)
	t.Table = table.New(table.Options{Layout: first, MaxKeys: maxKeys})
	return t
}

// Column is the states of all keys of a table under limits with the same identity.
type Column struct {
	// Base is the origin of times in the words.
	Base  int64
	in    *Table
	index int
	like  algorithm.Worder // a limit of the column; idle states are idle under all of them
	rates *rates           // of buckets; otherwise nil
}

// Table returns the table of the column.
func (c *Column) Table() *Table { return c.in }

// AddColumn returns a new column for limits like one, or nil if an entry has no room for it.
func (t *Table) AddColumn(like algorithm.Worder, now int64) *Column {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &Column{Base: baseFor(like, now), in: t, index: len(t.columns), like: like}
	width := uint8(1)
	if p, ok := like.(algorithm.Pairer); ok {
		c.rates = newRates(p)
		if algorithm.RateOf(p).NeedsPair() {
			width = 2
		}
	}
	if !t.setWidth(c, width) {
		return nil
	}
	t.columns = append(t.columns, c)
	return c
}

// setWidth makes a layout that gives the column the width, and reports whether an entry has room for it.
func (t *Table) setWidth(c *Column, width uint8) bool {
	next := t.newest.Load().with(c, width)
	if next.width > table.MaxWidth {
		return false
	}
	next.number = t.newest.Load().number + 1
	t.layouts[next.number].Store(next)
	t.AddLayout(next)
	t.newest.Store(next)
	return true
}

// Widen makes a layout that gives a bucket's column two words, and reports whether an entry has room for them.
func (c *Column) Widen() bool {
	t := c.in
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.isWide() || t.setWidth(c, 2)
}

// isWide reports whether entries have two words for the column, or will have them.
func (c *Column) isWide() bool { return c.in.newest.Load().spans[c.index].width == 2 }

func (t *Table) layoutOf(e table.Entry) *layout { return t.layouts[e.Layout].Load() }

// Pack returns a state as words. ok is false if they cannot tell all of it.
func (l *Limit) Pack(s algorithm.State, now int64) (w Words, ok bool) {
	c := l.Column
	if !l.Words().Settled(s, now) {
		return w, false
	}
	if !l.numbered {
		return Words{}, false
	}
	if l.pairs == nil || !c.isWide() {
		w.First, ok = l.Words().Pack(s, c.Base)
		return w, ok
	}
	w.Wide = true
	w.First, w.Second, ok = l.pairs.PackPair(s, uint64(l.number), c.Base)
	return w, ok
}

// Unpack returns the state of words that are not Elsewhere.
func (l *Limit) Unpack(w Words) algorithm.State {
	switch {
	case l.pairs == nil:
		return l.Words().Unpack(w.First, l.Base)
	case !w.Wide:
		return l.rates.writer(0).Unpack(w.First, l.Base)
	}
	return l.rates.writer(algorithm.RateNumber(w.First)).UnpackPair(w.First, w.Second, l.Base)
}

// Loan is the entry of a key that a caller has borrowed under the lock of the key's shard. Until it returns the entry,
// no other caller decides on it.
type Loan struct {
	in    *Table
	hash  table.Hash
	first Words // words of the first column, which the entry does not keep meanwhile
}

// Of reports whether the loan is the entry of a key in the table of a column.
func (l *Loan) Of(c *Column, h table.Hash) bool { return l.in == c.in && l.hash == h }

// Borrow borrows the entry of h. ok is false if there is no room for one. The caller holds the shard's lock until
// Return, and has not borrowed the entry.
func (t *Table) Borrow(h table.Hash, now int64) (_ Loan, ok bool) {
	for {
		e := t.Claim(h, now)
		if e.None() {
			return Loan{}, false
		}
		first, seized := e.Seize(true)
		if !seized {
			continue
		}
		t.loans[h%table.Shards].Add(1)
		loan := Loan{in: t, hash: h}
		if in := t.layoutOf(e); len(in.columns) > 0 {
			loan.first = in.read(in.columns[0], e, first)
		}
		e.Release(table.Elsewhere)
		return loan, true
	}
}

// Read returns the words of a column. They are Elsewhere if the state does not fit.
func (l *Loan) Read(c *Column) Words {
	if c.index == 0 {
		return l.first
	}
	e := l.in.Find(l.hash) // lent, so never idle
	return l.in.layoutOf(e).read(c, e, table.Elsewhere)
}

// Write stores the words of a column. The caller holds the lock of the shard.
func (l *Loan) Write(c *Column, w Words, now int64) {
	if c.index == 0 {
		l.first = w
		return
	}
	c.Put(l.hash, w, now)
}

// Return ends the loan.
func (l *Loan) Return(now int64) { l.in.newest.Load().columns[0].Put(l.hash, l.first, now) }

// Put stores the words of a column in the entry of h, if there is one: those of a borrowed entry or of one whose
// column reads Elsewhere. The caller holds the lock of the shard.
func (c *Column) Put(h table.Hash, w Words, now int64) {
	t := c.in
	for {
		e := t.Find(h)
		if e.None() {
			return
		}
		layout := t.layoutOf(e)
		if !layout.fits(c, w) {
			t.Upgrade(h, now)
			continue
		}
		if first, seized := e.Seize(true); seized {
			e.Release(layout.write(c, e, first, w))
			return
		}
	}
}

// rates numbers the rates that write the states of a column, in order of their first use.
type rates struct {
	mu      sync.Mutex
	numbers map[algorithm.Rate]int
	writers atomic.Pointer[[]algorithm.Pairer] // by number: a limit of the rate; earlier lists are the start of the newest
}

func newRates(first algorithm.Pairer) *rates {
	r := &rates{numbers: map[algorithm.Rate]int{algorithm.RateOf(first): 0}}
	r.writers.Store(&[]algorithm.Pairer{first})
	return r
}

// number returns the number of a limit's rate. ok is false for a new rate when there are too many.
func (r *rates) number(writer algorithm.Pairer) (number int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rate := algorithm.RateOf(writer)
	if number, ok := r.numbers[rate]; ok {
		return number, true
	}
	writers := *r.writers.Load()
	if number = len(writers); number == algorithm.MaxRates {
		return 0, false
	}
	writers = append(writers, writer) // in the space of the earlier list if it has any: its readers do not look there
	r.numbers[rate] = number
	r.writers.Store(&writers)
	return number, true
}

// writer returns a limit with the rate of a number that a state has.
func (r *rates) writer(number int) algorithm.Pairer { return (*r.writers.Load())[number] }
