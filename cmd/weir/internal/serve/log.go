package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// logPatience bounds the delay that a stalled reader of the log adds to the start and to the end.
const logPatience = time.Second

// maxUnwrittenLines bounds the log that waits for a stalled reader.
const maxUnwrittenLines = 2048

// logOptions are the flags of the log.
type logOptions struct {
	format, level string
}

// The formats of the log.
const (
	logText = "text"
	logJSON = "json"
)

func (o *logOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.format, "log-format", logText, "write the log, and everything else that the daemon prints, as `FORMAT`: text or json")
	flags.StringVar(&o.level, "log-level", "info", "log from `LEVEL` on: debug, info, warn or error; debug also names the keys of refusals")
	cli.Offer(cmd, "log-format", logText, logJSON)
	cli.Offer(cmd, "log-level", "debug", "info", "warn", "error")
}

func (o *logOptions) check() error {
	if o.format != logText && o.format != logJSON {
		return cli.Misusef("use text or json", "--log-format %s: no format", cli.Printable(o.format))
	}
	var level slog.Level
	if level.UnmarshalText([]byte(o.level)) != nil {
		return cli.Misusef("use debug, info, warn or error", "--log-level %s: no level", cli.Printable(o.level))
	}
	return nil
}

// handler returns what writes the log.
func (o *logOptions) handler(to io.Writer) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.level)) // check refuses others; the zero level is info
	options := &slog.HandlerOptions{Level: level}
	if o.format == logJSON {
		options.ReplaceAttr = readable
		return slog.NewJSONHandler(to, options)
	}
	return slog.NewTextHandler(to, options)
}

// report writes the error that ends the daemon, in the format of the log, and returns the exit code.
func (o *logOptions) report(to io.Writer, err error) (code int) {
	if _, quiet := errors.AsType[cli.Exit](err); quiet || o.format != logJSON {
		return cli.Report(to, err)
	}
	message, hints, code := plain.Told(err)
	slog.New(o.handler(to)).Error(message, "hints", hints, "code", code)
	return code
}

// readable writes a duration as the text log does, 1.5s, where JSON would have nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// newLog returns a log on out. Behind the last waiting line it reports those that were lost.
func newLog(out io.Writer, o *logOptions) *lines {
	report := o.handler(out)
	return newLines(out, maxUnwrittenLines, func(lost int64) bool {
		record := slog.NewRecord(time.Now(), slog.LevelWarn, "dropped log lines, because the reader of the log stalls", 0)
		record.Add("lines", lost)
		return report.Handle(context.Background(), record) == nil
	})
}

// lines writes lines on a goroutine of its own, so that a full pipe or a slow disk never blocks a decision, a save or
// a stop. It drops and counts lines that find no room, or cannot be written.
type lines struct {
	queue chan []byte // nil is the end
	lost  atomic.Int64
	ended chan struct{}
}

// newLines returns a writer of lines with room for most of them. It reports lost lines until report has returned true.
func newLines(out io.Writer, most int, report func(lost int64) bool) *lines {
	l := &lines{queue: make(chan []byte, most), ended: make(chan struct{})}
	go l.run(out, report)
	return l
}

// Write takes one line. It never blocks and never fails.
func (l *lines) Write(line []byte) (int, error) {
	select {
	case l.queue <- bytes.Clone(line):
	default:
		l.lost.Add(1)
	}
	return len(line), nil
}

// room reports whether n lines have room now. Otherwise it counts them as lost.
func (l *lines) room(n int) bool {
	if cap(l.queue)-len(l.queue) >= n {
		return true
	}
	l.lost.Add(int64(n))
	return false
}

// end writes the waiting lines, for up to within. It discards later lines.
func (l *lines) end(within time.Duration) {
	timeout := time.After(within)
	select {
	case l.queue <- nil:
	case <-timeout:
		return
	}
	select {
	case <-l.ended:
	case <-timeout:
	}
}

func (l *lines) run(out io.Writer, report func(lost int64) bool) {
	defer close(l.ended)
	for line := range l.queue {
		if line != nil {
			if _, err := out.Write(line); err != nil {
				l.lost.Add(1)
			}
		}
		if lost := l.lost.Load(); lost > 0 && len(l.queue) == 0 && report(lost) {
			l.lost.Add(-lost)
		}
		if line == nil {
			return
		}
	}
}
