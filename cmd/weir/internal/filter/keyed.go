package filter

import (
	"bytes"
	"context"
	"time"
)

// keyed holds back each line until its key admits it, while lines of other keys pass. It reads on while the held
// lines are within bounds.
type keyed struct {
	*stream
	key   func(line []byte) []byte
	most  int // bound on held lines
	turns turns
	queue *queued // the turns, if lines wait in a queue

	held, size int // lines and bytes held

	chunk   chunk  // the current chunk
	rest    []byte // the unread part of chunk
	ended   bool   // the input has ended
	partial []byte // the beginning of a line

	// last is a line that passes after all others: a line without a newline at the end of the input, or a line longer
	// than the bound. No other line can then come between its pieces.
	last *line
	// through means that the rest of the last line passes as it is read.
	through bool
}

// line is a line held back.
type line struct {
	data   []byte
	asked  int64 // when it began to wait
	number int64
}

func newKeyed(s *stream, o *Options, t turns) *keyed {
	return &keyed{stream: s, key: o.Key, most: o.Held, turns: t}
}

func (k *keyed) run() error {
	for {
		k.now = k.clock.read()
		if err := k.release(); err != nil {
			return err
		}
		if err := k.look(); err != nil {
			return err
		}
		switch {
		case k.ended && k.held == 0 && k.last == nil:
			return readError(k.chunk.err)
		case k.held > 0 && k.turns.due() <= k.now:
			continue
		}
		if err := k.wait(); err != nil {
			return err
		}
	}
}

// release writes every line that is due.
func (k *keyed) release() error {
	for k.held > 0 && k.turns.due() <= k.now {
		if k.gate.lag == 0 {
			k.now = k.clock.read()
		}
		l := k.turns.next(k.now)
		if l == nil {
			continue // a strict limit refused it
		}
		k.held--
		k.size -= len(l.data)
		if err := k.sink.write(l.data, 1); err != nil {
			return err
		}
		if k.last == l {
			k.last = nil
			k.through = !k.ended
		}
	}
	return nil
}

// look reads lines from the chunk. It plans the last line once all others have passed.
func (k *keyed) look() error {
	for k.readable() && len(k.rest) > 0 {
		if err := k.lookAtPiece(); err != nil {
			return err
		}
	}
	if k.chunk.data != nil && len(k.rest) == 0 && !k.ended {
		k.finishChunk()
	}
	if k.last != nil && k.held == 0 {
		k.hold(k.last)
	}
	return nil
}

// readable reports whether keyed may hold more.
func (k *keyed) readable() bool {
	return k.last == nil && k.held < k.most && k.size < maxHeldSize
}

func (k *keyed) lookAtPiece() error {
	piece, whole := k.rest, false
	if end := bytes.IndexByte(k.rest, '\n'); end >= 0 {
		piece, whole = k.rest[:end+1], true
	}
	k.rest = k.rest[len(piece):]
	if k.through {
		k.through = !whole
		return k.sink.write(piece, 0)
	}
	k.partial = append(k.partial, piece...)
	switch {
	case whole:
		k.hold(k.newLine())
	case len(k.partial) > MaxLine:
		k.last = k.newLine()
	}
	return nil
}

func (k *keyed) newLine() *line {
	l := &line{data: k.partial}
	k.partial = nil
	return l
}

// hold makes a line wait.
func (k *keyed) hold(l *line) {
	l.asked = k.now
	k.held++
	k.size += len(l.data)
	k.turns.add(string(k.key(l.data)), l, k.now)
}

// finishChunk returns the buffer to the source. After the last chunk, the rest without a newline becomes the last
// line.
func (k *keyed) finishChunk() {
	if k.chunk.err == nil {
		k.source.done(k.chunk)
		k.chunk = chunk{}
		return
	}
	k.ended = true
	if len(k.partial) > 0 {
		k.last = k.newLine()
	}
}

// wait waits until a line is due, or until there is more to read and room for it. It first writes released lines.
func (k *keyed) wait() error {
	var more <-chan chunk
	if !k.ended && k.chunk.data == nil && k.readable() {
		more = k.source.chunks
		select {
		case c := <-more:
			return k.take(c)
		default:
		}
	}
	if err := k.sink.flush(); err != nil {
		return err
	}
	due, granted := k.alarms()
	select {
	case <-granted:
		return k.queue.failed()
	case c := <-more:
		return k.take(c)
	case <-due:
		return nil
	case <-k.ctx.Done():
		return context.Cause(k.ctx)
	}
}

// alarms returns the channels that announce the next turn.
func (k *keyed) alarms() (due <-chan time.Time, granted <-chan struct{}) {
	switch {
	case k.queue != nil:
		return nil, k.queue.wake
	case k.held > 0:
		return k.alarm(k.turns.due()), nil
	}
	return nil, nil
}

func (k *keyed) take(c chunk) error {
	k.chunk, k.rest = c, c.data
	if k.ctx.Err() != nil {
		return context.Cause(k.ctx)
	}
	return nil
}
