package api

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// rareLog writes a warning that every request may cause at most once a second, with the number of suppressed
// warnings.
type rareLog struct {
	next  atomic.Int64 // the earliest time of the next warning
	quiet atomic.Int64
}

const rareLogGap = time.Second

func (l *rareLog) warn(log *slog.Logger, message string, args ...any) {
	now, next := time.Now().UnixNano(), l.next.Load()
	wait := time.Duration(next - now) // longer than the gap only after the clock was set back
	if wait > 0 && wait <= rareLogGap || !l.next.CompareAndSwap(next, now+int64(rareLogGap)) {
		l.quiet.Add(1)
		return
	}
	if quiet := l.quiet.Swap(0); quiet > 0 {
		args = append(args, "not_logged_before", quiet)
	}
	log.Warn(message, args...)
}
