// Package filter copies a stream at the pace of limits: line by line, in chunks of bytes, or line by line with limits
// for each key. Start with New and Filter.Run.
//
// One goroutine reads ahead and one writes. For what is not admitted at once, callers wait in the library: for one limit
// of this process with a weir.Limiter or a weir.Keyed, and otherwise with a pace.Queue.
package filter

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Filter copies one stream. New makes it, and Run runs it once.
type Filter struct {
	options Options
	terms   *terms
}

// New returns a Filter after checking the options. Errors of a limit are those of weir.New and weir.NewRule.
func New(o Options) (*Filter, error) {
	switch {
	case o.Chunk < 0 || o.Held < 0:
		return nil, fmt.Errorf("pace: chunk %d, held %d: below 0", o.Chunk, o.Held)
	case o.Work != nil && o.Chunk > 0:
		return nil, errors.New("pace: a chunk is not a line to work on")
	case o.Fair && o.Key == nil:
		return nil, errors.New("pace: fair requires a key")
	}
	if o.Held == 0 {
		o.Held = MaxHeld
	}
	t, err := newTerms(&o)
	if err != nil {
		return nil, err
	}
	o.Chunk = int(min(int64(o.Chunk), t.capacity))
	return &Filter{options: o, terms: t}, nil
}

// Run copies in to out. It returns nil at the end of in, the cause of the context when the context ends, and a
// *StreamError when in or out fails. Before it returns it writes all admitted lines, waits for Work, and gives back
// instants that were booked for others. It leaves a pending Read behind when the context ends.
func (f *Filter) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	t := newTurns(ctx, f.terms, &f.options)
	s := &stream{ctx: ctx, turns: t, source: newSource(ctx, in), sink: newSink(out, f.options.Moved)}
	if f.options.Key == nil && f.options.Work == nil {
		s.cut = (&straight{stream: s, size: f.options.Chunk}).look
	} else {
		s.cut = newWhole(s, &f.options).look
	}
	err := s.copy()
	if err == nil {
		t.works.Wait()
		err = t.failed()
		if err == nil && f.options.Work != nil {
			err = context.Cause(ctx) // it ended the work on the last lines
		}
	}
	stop() // ends the callers, and the reading goroutine once its Read returns
	t.leave()
	f.terms.flush(ctx)
	if failed := s.sink.flush(); failed != nil {
		return failed
	}
	return err
}
