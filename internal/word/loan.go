package word

import "github.com/weirflow/weir/internal/table"

// Loan is the entry of a key that a caller has borrowed under the lock of the key's shard. Until it returns the entry,
// no other caller decides on it.
type Loan struct {
	in    *Table
	hash  table.Hash
	first Words // of the first column, which the entry does not keep meanwhile
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
		first, held := e.Hold(true)
		if !held {
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
		if first, held := e.Hold(true); held {
			e.Release(layout.write(c, e, first, w))
			return
		}
	}
}
