package decide

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// places bound what callers hold in memory. A caller with large requests takes several.
type places struct {
	most int

	mu    sync.Mutex
	taken int
}

// The memory that a place stands for, in bytes of requests.
const waitingBytes = 16 << 10

// requestBytes is the memory of a request besides its key.
const requestBytes = 256

// sizeOf returns the memory of requests in bytes.
func sizeOf(requests []weir.Request) (bytes int) {
	for _, q := range Links(requests) {
		bytes += requestBytes + len(q.Key)
	}
	return bytes
}

// claim takes n places, or returns 0 if they are not free. A caller that needs more than there are takes all.
func (p *places) claim(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n = min(n, p.most); p.taken+n > p.most {
		return 0
	}
	p.taken += n
	return n
}

// leave gives places back.
func (p *places) leave(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
}

// RareLog writes a warning that every request may cause at most once a second, with the number of suppressed
// warnings.
type RareLog struct {
	next  atomic.Int64 // the earliest time of the next warning
	quiet atomic.Int64
}

const rareLogGap = time.Second

// Warn writes a warning, or leaves it out.
func (l *RareLog) Warn(log *slog.Logger, message string, args ...any) {
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
