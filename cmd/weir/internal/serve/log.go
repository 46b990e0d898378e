package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// maxUnwrittenLog bounds the bytes of log that wait for a stalled reader: about two thousand lines. The buffer drops
// and counts later lines.
const maxUnwrittenLog = 256 << 10

// logBuffer writes a log on a goroutine of its own, so that a full pipe or a slow disk never blocks a decision, a
// save or a stop. It takes one line per Write. All methods are safe for concurrent use.
type logBuffer struct {
	out    io.Writer
	report slog.Handler // writes to out directly
	wake   chan struct{}
	ending chan struct{}
	ended  chan struct{}
	lost   int // lines to report; only the writing goroutine uses it

	mu      sync.Mutex
	waiting []byte
	dropped int // lines since waiting became full
}

func newLogBuffer(out io.Writer) *logBuffer {
	l := &logBuffer{
		out:    out,
		report: slog.NewTextHandler(out, nil),
		wake:   make(chan struct{}, 1),
		ending: make(chan struct{}),
		ended:  make(chan struct{}),
	}
	go l.run()
	return l
}

// Write never blocks and never fails. Once it drops a line it drops all lines until the writer catches up, so that
// the report stands where lines are missing.
func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	if l.dropped > 0 || len(l.waiting)+len(line) > maxUnwrittenLog {
		l.dropped++
	} else {
		l.waiting = append(l.waiting, line...)
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // the writer is awake already
	}
	return len(line), nil
}

// end writes the waiting lines, for up to within. It discards later lines.
func (l *logBuffer) end(within time.Duration) {
	close(l.ending)
	select {
	case <-l.ended:
	case <-time.After(within):
	}
}

func (l *logBuffer) run() {
	defer close(l.ended)
	var spare []byte
	for {
		select {
		case <-l.wake:
			spare = l.write(spare)
		case <-l.ending:
			l.write(spare)
			return
		}
	}
}

// write writes all waiting lines to out, and then reports dropped lines. It swaps the buffer for the spare one and
// returns the old buffer.
func (l *logBuffer) write(spare []byte) []byte {
	l.mu.Lock()
	text, dropped := l.waiting, l.dropped
	l.waiting, l.dropped = spare[:0], 0
	l.mu.Unlock()
	if len(text) > 0 {
		if n, err := l.out.Write(text); err != nil {
			l.lost += bytes.Count(text[n:], []byte("\n"))
		}
	}
	if l.lost += dropped; l.lost > 0 {
		record := slog.NewRecord(time.Now(), slog.LevelWarn, "dropped log lines, because the reader of the log stalls", 0)
		record.Add("lines", l.lost)
		if l.report.Handle(context.Background(), record) == nil {
			l.lost = 0
		}
	}
	return text
}
