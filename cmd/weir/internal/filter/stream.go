package filter

import (
	"bufio"
	"context"
	"io"
)

// stream is one run of a filter. It cuts the input into pieces, holds back those whose turn has not come, and writes the
// others.
type stream struct {
	ctx    context.Context
	cut    func() error // cuts the chunk, as far as there is room for pieces
	turns  *turns
	source *source
	sink   *sink

	chunk chunk  // the current chunk; without data there is none
	rest  []byte // the uncut part of the chunk
	ended bool   // the input has ended
	full  bool   // there is no room for more pieces
	later bool   // a piece waits until all others are written
}

func (s *stream) copy() error {
	for {
		if err := s.cut(); err != nil {
			return err
		}
		if s.ended && s.turns.held == 0 && !s.later {
			return readError(s.chunk.err)
		}
		if err := s.wait(); err != nil {
			return err
		}
		for p, ok := s.turns.next(); ok; p, ok = s.turns.next() {
			if err := s.release(p); err != nil {
				return err
			}
		}
	}
}

// release writes a piece whose turn has come, or begins the work on it.
func (s *stream) release(p piece) error {
	if p.slot != nil {
		s.turns.begin(p)
		return nil
	}
	err := s.sink.write(p.data, p.lines)
	if p.buffer != nil {
		s.source.done(p.buffer)
	}
	return err
}

// pass writes a piece if its turn is now. It reports false if the piece must be held.
func (s *stream) pass(key string, p piece) (passed bool, err error) {
	if p.cost > 0 && !s.turns.pass(key, p.cost) {
		return false, nil
	}
	return true, s.sink.write(p.data, p.lines)
}

// finish ends the chunk, which is cut to its end. Its buffer returns to the source unless held pieces are in it.
func (s *stream) finish(free bool) {
	switch {
	case s.chunk.data == nil || s.ended:
	case s.chunk.err != nil:
		s.ended = true
	default:
		if free {
			s.source.done(s.chunk.data)
		}
		s.chunk = chunk{}
	}
}

// wait waits for a turn, or for more input if there is room for it. It first writes what was admitted. Turns of a strict
// limit are asked for after that, because they count from the instant of the grant.
func (s *stream) wait() error {
	var more <-chan chunk
	if !s.ended && s.chunk.data == nil && !s.full {
		more = s.source.chunks
	}
	if !s.turns.terms.strict && s.turns.ask() {
		return nil
	}
	select {
	case c := <-more:
		return s.take(c)
	case <-s.turns.wake:
		return s.turns.failed()
	default:
	}
	if err := s.sink.flush(); err != nil {
		return err
	}
	if s.turns.ask() {
		return nil
	}
	select {
	case <-s.turns.wake:
		return s.turns.failed()
	case c := <-more:
		return s.take(c)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

func (s *stream) take(c chunk) error {
	s.chunk, s.rest = c, c.data
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// chunkSize is the size of a read. The filter holds pieces of up to two chunks, and the source reads one chunk ahead.
const (
	chunkSize = 64 << 10
	buffers   = 3
)

// chunk is the result of one Read. A chunk with an error is the last.
type chunk struct {
	data []byte
	err  error
}

// source reads on a goroutine of its own, so that an interrupt or a due line does not wait for the input.
type source struct {
	chunks chan chunk
	free   chan []byte // unused buffers
}

func newSource(ctx context.Context, in io.Reader) *source {
	s := &source{chunks: make(chan chunk), free: make(chan []byte, buffers)}
	for range cap(s.free) {
		s.free <- make([]byte, chunkSize)
	}
	go s.read(ctx, in)
	return s
}

func (s *source) read(ctx context.Context, in io.Reader) {
	for empty := 0; ; {
		var buffer []byte
		select {
		case buffer = <-s.free:
		case <-ctx.Done():
			return
		}
		n, err := in.Read(buffer)
		if empty++; n > 0 {
			empty = 0
		} else if empty > 100 && err == nil {
			err = io.ErrNoProgress
		}
		select {
		case s.chunks <- chunk{data: buffer[:n], err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// done returns the buffer of a chunk to the source.
func (s *source) done(buffer []byte) { s.free <- buffer[:chunkSize] }

// readError returns the error of Run for an error of the input.
func readError(err error) error {
	if err == nil || err == io.EOF {
		return nil
	}
	return &StreamError{Op: "read", Err: err}
}

// sink buffers output and reports what it has written.
type sink struct {
	out          *bufio.Writer
	moved        func(lines, bytes int64)
	lines, bytes int64 // since the last report
}

func newSink(out io.Writer, moved func(lines, bytes int64)) *sink {
	if moved == nil {
		moved = func(int64, int64) {}
	}
	return &sink{out: bufio.NewWriterSize(out, chunkSize), moved: moved}
}

// write adds a piece that holds the beginnings of lines lines. The piece may stay in the buffer until flush.
func (s *sink) write(piece []byte, lines int64) error {
	s.lines += lines
	s.bytes += int64(len(piece))
	if s.out.Available() < len(piece) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	_, err := s.out.Write(piece)
	return writeError(err)
}

func (s *sink) flush() error {
	if err := s.out.Flush(); err != nil {
		return writeError(err)
	}
	if s.bytes > 0 {
		s.moved(s.lines, s.bytes)
		s.lines, s.bytes = 0, 0
	}
	return nil
}

func writeError(err error) error {
	if err == nil {
		return nil
	}
	return &StreamError{Op: "write", Err: err}
}
