package word

import (
	"runtime"
	"slices"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Ask is cost N of the key of a hash under the limits of a row.
type Ask struct {
	Row  *Row
	Hash table.Hash
	N    int64
}

// TakeAll decides on all asks at once and writes the answer to a, which must be zero. Binding is the index of an ask.
// It takes nothing unless all are admitted. The rows have at most MaxRow limits together. done is false if the decision
// needs the locks.
//
// It waits for another caller only before it holds an entry, so no two callers wait for each other. If it often finds
// an entry held, the locks decide.
func TakeAll(asks []Ask, now int64, a *algorithm.Answer) (done bool) {
	for range 16 {
		if r := takeEntries(asks, now, a); r != moved {
			return r == decided
		}
		runtime.Gosched()
	}
	return false
}

// takeEntries decides on asks of any limits while it holds all entries.
func takeEntries(asks []Ask, now int64, a *algorithm.Answer) result {
	var entries [MaxRow]table.Entry
	for i, q := range asks {
		e, ok := q.Row.claim(q.Hash, now)
		if !ok || isAmong(asks[:i], q) {
			return slow
		}
		entries[i] = e
	}
	firsts, r := holdAll(entries[:len(asks)])
	if r == decided && !takeHeld(asks, &entries, &firsts, now, a) {
		r = slow
	}
	return r
}

// isAmong reports whether an ask is of the entry of another, which one caller cannot hold twice.
func isAmong(asks []Ask, q Ask) bool {
	return slices.ContainsFunc(asks, func(x Ask) bool { return x.Row.in == q.Row.in && x.Hash == q.Hash })
}

// holdAll holds all entries, or none: then the result is moved if the caller should try again, and otherwise slow.
func holdAll(entries []table.Entry) (firsts [MaxRow]uint64, r result) {
	for i, e := range entries {
		first, held := e.First(), false
		switch {
		case i == 0:
			first, held = e.Hold(false)
		case first < table.Held:
			held = e.Swap(first, table.Held)
		}
		if held {
			firsts[i] = first
			continue
		}
		for j := range i {
			entries[j].Release(firsts[j])
		}
		if first == table.Elsewhere {
			return firsts, slow
		}
		return firsts, moved
	}
	return firsts, decided
}

// takeHeld decides on entries that the caller holds, and releases them.
func takeHeld(asks []Ask, entries *[MaxRow]table.Entry, firsts *[MaxRow]uint64, now int64, a *algorithm.Answer) (done bool) {
	var d rowDecision
	for i, q := range asks {
		if done = d.decide(q.Row, entries[i], firsts[i], now, q.N) == decided; !done {
			break
		}
	}
	done = done && d.compose(now, a)
	from, binding := 0, 0
	for i, q := range asks {
		if a.Changed {
			firsts[i] = d.store(entries[i], firsts[i], from, len(q.Row.limits))
		}
		if from <= a.Binding {
			binding = i
		}
		from += len(q.Row.limits)
		entries[i].Release(firsts[i])
	}
	a.Binding = binding
	return done
}
