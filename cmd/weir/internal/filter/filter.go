// Package filter copies a stream at the pace of a limit: line by line, a few
// bytes at a time, or line by line with a pace for each key. Start with New and
// Filter.Run.
//
// One goroutine reads ahead a little, another decides, waits and writes. What
// was let go is written before anything is waited for, so that nothing is held
// in a buffer, and in one piece where many lines are let go at once.
package filter

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weirflow/weir"
)

// Options say what is paced, and how.
type Options struct {
	// Limit is what lines, or bytes, wait for. A Concurrency is refused: a
	// filter never knows when what it let go is over.
	Limit weir.Limit
	// Chunk is how many bytes at most go at once. Default: 0, lines are paced.
	Chunk int
	// Key tells lines apart. Default: nil, all have one pace and keep their
	// order. With a key only the lines of a key do.
	Key func(line []byte) []byte
	// Fair makes the keys share the limit in turns. Default: each has its own.
	Fair bool
	// Held is how many lines at most are held back while those of other keys
	// go. Default: MaxHeld.
	Held int
	// Moved is told how many lines and bytes were written, now and then, from
	// the goroutine of Run.
	Moved func(lines, bytes int64)
}

// The bounds of what is held back with a key. A longer line waits until all
// lines before it are gone and passes in pieces.
const (
	MaxHeld     = 16384
	maxHeldSize = 16 << 20
	MaxLine     = 1 << 20
)

// Filter is made with New and run once.
type Filter struct {
	options Options
	gate    *gate
}

// New checks the options. Errors of a limit are those of weir.New.
func New(o Options) (*Filter, error) {
	switch {
	case o.Chunk < 0 || o.Held < 0:
		return nil, fmt.Errorf("pace: chunk %d, held %d: at least 0", o.Chunk, o.Held)
	case o.Chunk > 0 && o.Key != nil:
		return nil, errors.New("pace: bytes have no key")
	case o.Fair && o.Key == nil:
		return nil, errors.New("pace: fair needs a key")
	}
	if o.Held == 0 {
		o.Held = MaxHeld
	}
	g, err := newGate(o.Limit, o.Key != nil && !o.Fair)
	if err != nil {
		return nil, err
	}
	o.Chunk = int(min(int64(o.Chunk), g.capacity))
	return &Filter{options: o, gate: g}, nil
}

// Run copies in to out until in ends, and returns nil; until the context does,
// and returns its cause; or until one of both fails, and returns a *StreamError.
// In each case what was let go has been written. A Read that is under way when
// the context ends is left behind.
func (f *Filter) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	clock := newClock()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the reading goroutine, once its Read returns
	s := stream{
		ctx:    ctx,
		clock:  clock,
		now:    clock.read(),
		gate:   f.gate,
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
	case o.Chunk > 0:
		return s.straight(chunks(o.Chunk))
	case o.Key == nil:
		return s.straight(lines())
	case o.Fair:
		return newKeyed(s, o, newShared(s.gate)).run()
	}
	return newKeyed(s, o, newApart(s.gate)).run()
}

// StreamError is a failure of what is copied from or to.
type StreamError struct {
	Op  string // read or write
	Err error
}

func (e *StreamError) Error() string { return fmt.Sprintf("pace: %s: %v", e.Op, e.Err) }

func (e *StreamError) Unwrap() error { return e.Err }
