package api

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// rareLog warns of what may happen with every request: once a second at most, with
// how often it has held its tongue since.
type rareLog struct {
	next  atomic.Int64 // when it may speak again
	quiet atomic.Int64
}

const rareLogGap = time.Second

func (l *rareLog) warn(log *slog.Logger, message string, args ...any) {
	now, next := time.Now().UnixNano(), l.next.Load()
	wait := time.Duration(next - now) // longer than the gap only if the clock was set back
	if wait > 0 && wait <= rareLogGap || !l.next.CompareAndSwap(next, now+int64(rareLogGap)) {
		l.quiet.Add(1)
		return
	}
	if quiet := l.quiet.Swap(0); quiet > 0 {
		args = append(args, "not_logged_before", quiet)
	}
	log.Warn(message, args...)
}
