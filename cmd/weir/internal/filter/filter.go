// Package filter copies a stream at the rate of a limit: line by line, in chunks of bytes, or line by line with a
// limit for each key. Start with New and Filter.Run.
//
// One goroutine reads ahead. Another decides, waits and writes. It writes all released lines before it waits, and
// writes lines that are released together in one piece.
package filter

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weirflow/weir"
)

// Options configure a Filter.
type Options struct {
	// Limit is the limit that lines or bytes wait for. New refuses a Concurrency, because a filter never knows when
	// the work on a line is over.
	Limit weir.Limit
	// Shared, instead of Limit, is a rule on an engine. Lines then stay whole, up to MaxLine.
	Shared *Shared
	// Chunk is the largest number of bytes written at once. With Shared and Key each line costs its bytes, and lines
	// stay whole. Default: 0, which paces lines.
	Chunk int
	// Key returns the key of a line. Only lines of the same key then keep their order. Default: nil; all lines share
	// one limit and keep their order.
	Key func(line []byte) []byte
	// Fair makes all keys share the limit in turns. Default: each key has its own limit.
	Fair bool
	// Held bounds the lines that are held back while lines of other keys pass. Default: MaxHeld.
	Held int
	// Moved receives the numbers of lines and bytes written since the last call. The goroutine of Run calls it from
	// time to time.
	Moved func(lines, bytes int64)
}

// The bounds of the held lines. A longer line waits until all earlier lines are written, and then passes in pieces.
const (
	MaxHeld     = 16384
	maxHeldSize = 16 << 20
	MaxLine     = 1 << 20
)

// Filter copies one stream. New makes it, and Run runs it once.
type Filter struct {
	options Options
	gate    *gate
}

// New returns a Filter after checking the options. Errors of a limit are those of weir.New.
func New(o Options) (*Filter, error) {
	switch {
	case o.Chunk < 0 || o.Held < 0:
		return nil, fmt.Errorf("pace: chunk %d, held %d: below 0", o.Chunk, o.Held)
	case o.Chunk > 0 && o.Key != nil && o.Shared == nil:
		return nil, errors.New("pace: a chunk with a key needs a shared rule")
	case o.Fair && o.Key == nil:
		return nil, errors.New("pace: fair requires a key")
	}
	if o.Held == 0 {
		o.Held = MaxHeld
	}
	g, err := newGateOf(&o)
	if err != nil {
		return nil, err
	}
	o.Chunk = int(min(int64(o.Chunk), g.capacity))
	return &Filter{options: o, gate: g}, nil
}

// Run copies in to out. It returns nil at the end of in, the cause of the context when the context ends, and a
// *StreamError when in or out fails. Before it returns it writes all released lines. It leaves a pending Read behind
// when the context ends.
func (f *Filter) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	clock := newClock()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the reading goroutine once its Read returns
	s := stream{
		ctx:    ctx,
		clock:  clock,
		now:    clock.read(),
		gate:   f.gate,
		shared: f.options.Shared,
		source: newSource(ctx, in, clock),
		sink:   newSink(out, f.options.Moved),
	}
	err := s.copy(&f.options)
	if failed := s.sink.flush(); failed != nil {
		return failed
	}
	return err
}

func (s *stream) copy(o *Options) error {
	switch {
	case o.Chunk > 0 && o.Key == nil:
		return s.straight(chunks(o.Chunk))
	case o.Shared != nil:
		return s.queued(o)
	case o.Key == nil:
		return s.straight(lines())
	case o.Fair:
		return newKeyed(s, o, newShared(s.gate)).run()
	}
	return newKeyed(s, o, newApart(s.gate)).run()
}

// queued copies lines that wait in a queue. It returns when no caller is left in the queue, so that instants that were
// booked for unwritten lines are given back.
func (s *stream) queued(o *Options) error {
	ctx, leave := context.WithCancel(s.ctx)
	q := newQueued(ctx, o)
	k := newKeyed(s, o, q)
	k.queue = q
	if k.key == nil {
		k.key = func([]byte) []byte { return nil }
	}
	err := k.run()
	leave()
	q.callers.Wait()
	return err
}

// StreamError is a failure of the input or the output.
type StreamError struct {
	Op  string // "read" or "write"
	Err error
}

func (e *StreamError) Error() string { return fmt.Sprintf("pace: %s: %v", e.Op, e.Err) }

func (e *StreamError) Unwrap() error { return e.Err }
