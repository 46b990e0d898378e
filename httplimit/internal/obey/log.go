package obey

import (
	"slices"
	"sort"
	"time"
)

// sendLog holds when the answers to the client's own requests arrived. The server counted each request before that.
type sendLog struct {
	entries []logEntry // oldest first
}

type logEntry struct {
	at time.Time
	n  int64
}

// maxEntries bounds a log. A full log merges neighbours, and keeps the later instant of both, so that units come back
// a little later.
const maxEntries = 1024

// add logs a request, and drops entries that are older than two windows: answers that are still on their way concern
// the window before they arrive.
func (l *sendLog) add(at time.Time, window time.Duration) {
	if window == 0 {
		l.entries = l.entries[:0]
		return
	}
	old := l.after(at.Add(-2 * window))
	if last := len(l.entries) - 1; last >= old && !l.entries[last].at.Before(at) {
		l.entries[last].n++
		return
	}
	if old > 0 && (old >= len(l.entries)/2 || len(l.entries) == maxEntries) {
		l.entries = slices.Delete(l.entries, 0, old)
	}
	if len(l.entries) == maxEntries {
		l.merge()
	}
	l.entries = append(l.entries, logEntry{at, 1})
}

func (l *sendLog) merge() {
	for i := 1; i < len(l.entries); i += 2 {
		l.entries[i/2] = logEntry{l.entries[i].at, l.entries[i-1].n + l.entries[i].n}
	}
	l.entries = l.entries[:len(l.entries)/2]
}

// after returns the index of the first entry after t.
func (l *sendLog) after(t time.Time) int {
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].at.After(t) })
}

// since returns the number of requests after t.
func (l *sendLog) since(t time.Time) (n int64) {
	for _, e := range l.entries[l.after(t):] {
		n += e.n
	}
	return n
}

// leaves returns how long it takes until n requests have left the window, or Never if there are fewer.
func (l *sendLog) leaves(now time.Time, window time.Duration, n int64) time.Duration {
	for _, e := range l.entries[l.after(now.Add(-window)):] {
		if n -= e.n; n <= 0 {
			return e.at.Add(window).Sub(now)
		}
	}
	return Never
}
