package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// takeWords decides on asks of one limit each, whose entries are of one word. The result is wide if others are among
// them. It decides on the words that it reads, and the result is moved unless all of them were there at one instant.
func takeWords(asks []Ask, now int64, a *algorithm.Answer) result {
	var found [MaxRow]*uint64
	words := found[:len(asks)]
	if !findWords(asks, words, now) {
		return wide
	}
	loans := countLoans(asks)
	var d rowDecision
	for i := range asks {
		q := &asks[i]
		l := q.Row.limits[0]
		switch word := atomic.LoadUint64(words[i]); {
		case word == table.Held || word == table.Moved:
			return moved
		case word == table.Elsewhere || word == table.Fresh && l.mayBeEvicted(now) || !d.decideWord(l, word, now, q.N):
			return slow
		}
	}
	if !d.compose(now, a) {
		return slow
	}
	if a.Changed && replaceWords(words, d.parts[:]) || !a.Changed && stand(words, d.parts[:]) && countLoans(asks) == loans {
		return decided
	}
	*a = algorithm.Answer{}
	return moved
}

// findWords finds the words of the asks. The searches do not wait for each other's memory, because the decisions come
// later.
func findWords(asks []Ask, words []*uint64, now int64) (ok bool) {
	for i := range asks {
		q := &asks[i]
		if l := q.Row.limits[0]; len(q.Row.limits) > 1 || !l.oneWord {
			return false
		}
		e := q.Row.in.Claim(q.Hash, now)
		if len(e.Words) != 1 {
			return false
		}
		words[i] = &e.Words[0]
	}
	return true
}

// countLoans returns the number of loans of the keys' shards so far. Only a loan brings back an earlier word: each
// decision writes one that the entry has never had. Words that stay the same without a loan were there all the time.
func countLoans(asks []Ask) (n uint64) {
	for i := range asks {
		q := &asks[i]
		n += q.Row.in.loans[q.Hash%table.Shards].Load()
	}
	return n
}

// stand reports whether the words are those that were decided on. The last was read last, and needs no second look.
func stand(words []*uint64, parts []rowPart) bool {
	for i, at := range words[:len(words)-1] {
		if atomic.LoadUint64(at) != parts[i].first {
			return false
		}
	}
	return true
}

// replaceWords writes all words, or none if one is not that on which the part was decided. It holds all but the last
// meanwhile.
func replaceWords(words []*uint64, parts []rowPart) (ok bool) {
	last := len(words) - 1
	for i, at := range words[:last] {
		if !atomic.CompareAndSwapUint64(at, parts[i].first, table.Held) {
			releaseWords(words[:i], parts, false)
			return false
		}
	}
	ok = atomic.CompareAndSwapUint64(words[last], parts[last].first, parts[last].next.First)
	releaseWords(words[:last], parts, ok)
	return ok
}

func releaseWords(words []*uint64, parts []rowPart, changed bool) {
	for i, at := range words {
		word := parts[i].first
		if changed {
			word = parts[i].next.First
		}
		table.Write(at, word)
	}
}
