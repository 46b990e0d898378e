package memory

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// loadedName is the name of a limit's states.
type loadedName struct {
	name     string
	identity string
	part     *compiled.Part // with the capacity of the last cell
	states   *limitStates   // nil for buckets and cycles until their first rate

	unread  string // why no state of the name can be read; empty if they can
	leftOut int    // number of its states that were not understood
	reason  string // for the first of them

	// Used if states fit in words:
	base   int64 // base of the words in the snapshot
	apart  bool  // they have a table of their own
	limits []loadedLimit
}

// loadedLimit is a limit that wrote words: that of a saved rate, or the only one.
type loadedLimit struct {
	part        compiled.Part
	*word.Limit // nil if no limit has the rate
}

// loadedColumn is a column of a layout in the snapshot.
type loadedColumn struct {
	*loadedName
	width int
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
	if words[0] >= table.Seized || number >= len(c.limits) {
		return nil, s, false
	}
	limit = &c.limits[number]
	if limit.Limit == nil || c.width > limit.Widest() {
		return nil, s, false
	}
	s, ok = algorithm.RestoreWords(limit.Words(), words, c.base)
	return limit, s, ok
}

const notUnderstood = "holds states that this program does not understand"

// leaveOut counts a state that is not loaded.
func (n *loadedName) leaveOut(reason string) {
	if n.leftOut++; n.reason == "" {
		n.reason = reason
	}
}

// leftOut describes the states that were not understood, a line for each name; nil if there are none.
func (l *load) leftOut() (lines []string) {
	for _, n := range l.names {
		if n.leftOut == 0 {
			continue
		}
		of, identity, _ := strings.Cut(withoutSuffix(n.name), "\x00")
		identity, _, _ = strings.Cut(identity, "\x00")
		reason := n.reason
		if n.unread != "" {
			reason = n.unread
		}
		lines = append(lines, fmt.Sprintf("rule %q, limit %q (states: %d): %s", of, identity, n.leftOut, reason))
	}
	return lines
}
