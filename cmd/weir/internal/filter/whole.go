package filter

import (
	"bytes"
	"fmt"
)

// whole cuts whole lines, so that a line can be held back while lines of other keys pass. It reads on while the held
// lines are within bounds.
type whole struct {
	*stream
	key   func(line []byte) []byte
	bytes bool // a line costs its bytes, not 1
	work  bool // lines are not written
	most  int  // bound on held lines

	partial []byte // the beginning of a line
	// last is a line that passes after all others: a line without a newline at the end of the input, or a line longer
	// than the bound. No other line can then come between its pieces.
	last []byte
	// through means that the rest of the last line passes as it is read.
	through bool
}

func newWhole(s *stream, o *Options) *whole {
	w := &whole{stream: s, key: o.Key, bytes: o.Chunk > 0, most: o.Held, work: o.Work != nil}
	if w.key == nil {
		w.key = func([]byte) []byte { return nil }
	}
	return w
}

func (w *whole) look() error {
	for w.readable() && len(w.rest) > 0 {
		if err := w.cutPiece(); err != nil {
			return err
		}
	}
	if len(w.rest) == 0 {
		w.finish(true)
	}
	if w.ended && len(w.partial) > 0 && w.last == nil {
		w.last, w.partial = w.partial, nil
	}
	if w.last != nil && w.turns.held == 0 {
		return w.passLast()
	}
	w.later, w.full = w.last != nil, !w.readable()
	return nil
}

// passLast holds the last line, now that all others are written, or passes it and the lines after it.
func (w *whole) passLast() error {
	w.through = !w.ended
	line := w.last
	w.last, w.later = nil, false
	if err := w.hold(line); err != nil {
		return err
	}
	if w.turns.held == 0 {
		return w.look()
	}
	w.full = true
	return nil
}

// readable reports whether there is room for another line.
func (w *whole) readable() bool {
	return w.last == nil && w.turns.held < w.most && w.turns.size < maxHeldSize && !(w.through && w.turns.held > 0)
}

func (w *whole) cutPiece() error {
	line, ends := w.rest, false
	if end := bytes.IndexByte(w.rest, '\n'); end >= 0 {
		line, ends = w.rest[:end+1], true
	}
	w.rest = w.rest[len(line):]
	switch {
	case w.through:
		w.through = !ends
		return w.sink.write(line, 0)
	case ends && len(w.partial) == 0:
		return w.hold(line)
	}
	w.partial = append(w.partial, line...)
	switch {
	case ends:
		line, w.partial = w.partial, nil
		return w.hold(line)
	case len(w.partial) > MaxLine && w.work:
		return &StreamError{Op: "read", Err: fmt.Errorf("a line is above %d bytes, too long to work on", MaxLine)}
	case len(w.partial) > MaxLine:
		w.last, w.partial = w.partial, nil
	}
	return nil
}

// hold passes a line, or makes it wait in a copy of its own.
func (w *whole) hold(line []byte) error {
	p := piece{data: line, cost: 1, lines: 1}
	if w.bytes {
		p.cost = int64(len(line))
	}
	key := string(w.key(line))
	passed, err := w.pass(key, p)
	if err == nil && !passed {
		p.data = bytes.Clone(line)
		w.turns.add(key, p)
	}
	return err
}
