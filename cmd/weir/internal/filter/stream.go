package filter

import "context"

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

// finish ends the chunk, all of which is cut. Its buffer returns to the source unless held pieces are in it.
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
// limit are asked for after that, because they count from the instant at which they are granted.
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
