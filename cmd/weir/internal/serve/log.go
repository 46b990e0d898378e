package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

// logPatience bounds the delay that a stalled reader of the log adds to the start and to the end.
const logPatience = time.Second

// maxUnwrittenLines bounds the log that waits for a stalled reader.
const maxUnwrittenLines = 2048

// logBuffer writes a log on a goroutine of its own, so that a full pipe or a slow disk never blocks a decision, a
// save or a stop. It takes one line per Write, and drops and counts lines that find no room.
type logBuffer struct {
	lines chan []byte // nil ends the log
	lost  atomic.Int64
	ended chan struct{}
}

func newLogBuffer(out io.Writer) *logBuffer {
	l := &logBuffer{lines: make(chan []byte, maxUnwrittenLines), ended: make(chan struct{})}
	go l.run(out)
	return l
}

// Write never blocks and never fails.
func (l *logBuffer) Write(line []byte) (int, error) {
	select {
	case l.lines <- bytes.Clone(line):
	default:
		l.lost.Add(1)
	}
	return len(line), nil
}

// end writes the waiting lines, for up to within. It discards later lines.
func (l *logBuffer) end(within time.Duration) {
	timeout := time.After(within)
	select {
	case l.lines <- nil:
	case <-timeout:
		return
	}
	select {
	case <-l.ended:
	case <-timeout:
	}
}

// run writes lines. Behind the last waiting line it reports those that were lost.
func (l *logBuffer) run(out io.Writer) {
	defer close(l.ended)
	report := slog.NewTextHandler(out, nil)
	for line := range l.lines {
		if line != nil {
			if _, err := out.Write(line); err != nil {
				l.lost.Add(1)
			}
		}
		if lost := l.lost.Load(); lost > 0 && len(l.lines) == 0 {
			record := slog.NewRecord(time.Now(), slog.LevelWarn, "dropped log lines, because the reader of the log stalls", 0)
			record.Add("lines", lost)
			if report.Handle(context.Background(), record) == nil {
				l.lost.Add(-lost)
			}
		}
		if line == nil {
			return
		}
	}
}
