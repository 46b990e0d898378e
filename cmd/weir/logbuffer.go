package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// maxUnwrittenLog is how many bytes of log wait for a reader that stalls, about
// two thousand lines. Later lines are dropped and counted.
const maxUnwrittenLog = 256 << 10

// logBuffer writes a log on a goroutine of its own, so that a full pipe or a
// slow disk never blocks the caller: a decision, a save or a stop. It takes one
// line per Write, and all methods may be called concurrently.
type logBuffer struct {
	out    io.Writer
	report slog.Handler // writes to out directly
	wake   chan struct{}
	ending chan struct{}
	ended  chan struct{}
	lost   int // lines to report; belongs to the writing goroutine

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

// Write never blocks and never fails. Once a line is dropped, so are all others
// until the writer catches up, so that the report stands where they are missing.
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
	default: // it is awake already
	}
	return len(line), nil
}

// end writes what waits, for as long as within. Later lines go nowhere.
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

// write hands everything that waits to out, and then says what was dropped. It
// swaps the buffer for the spare one, which it returns in its place.
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
		record := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped, because the log could not be written", 0)
		record.Add("lines", l.lost)
		if l.report.Handle(context.Background(), record) == nil {
			l.lost = 0
		}
	}
	return text
}
