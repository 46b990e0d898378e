package filter

import (
	"bytes"
	"context"
	"time"
)

// stream is one run of a filter.
type stream struct {
	ctx    context.Context
	clock  clock
	now    int64 // when the clock was read last
	gate   *gate
	source *source
	sink   *sink
	timer  *time.Timer
}

// straight passes one piece after the other, each in its turn.
func (s *stream) straight(cut cutter) error {
	for {
		c, err := s.next()
		if err != nil {
			return err
		}
		for rest := c.data; len(rest) > 0; {
			n, cost, lines := cut(rest)
			if err := s.turn(c.arrived, cost); err != nil {
				return err
			}
			if err := s.sink.write(rest[:n], lines); err != nil {
				return err
			}
			rest = rest[n:]
		}
		if c.err != nil {
			return readError(c.err)
		}
		s.source.done(c)
	}
}

// cutter says how long the first piece of data is, what it costs, and how many
// lines begin with it.
type cutter func(data []byte) (n int, cost, lines int64)

// chunks cuts at most so many bytes, each costing 1.
func chunks(most int) cutter {
	return func(data []byte) (int, int64, int64) {
		n := min(len(data), most)
		return n, int64(n), 0
	}
}

// lines cuts lines. A line costs 1 where it begins; if it goes on in the next
// data, that is free. So a line may be of any length.
func lines() cutter {
	inside := false
	return func(data []byte) (int, int64, int64) {
		cost := int64(1)
		if inside {
			cost = 0
		}
		end := bytes.IndexByte(data, '\n')
		inside = end < 0
		if inside {
			return len(data), cost, cost
		}
		return end + 1, cost, cost
	}
}

// next is the next chunk. If it is not there yet, what was let go is written
// first.
func (s *stream) next() (chunk, error) {
	if err := s.ctx.Err(); err != nil {
		return chunk{}, context.Cause(s.ctx)
	}
	select {
	case c := <-s.source.chunks:
		return c, nil
	default:
	}
	if err := s.sink.flush(); err != nil {
		return chunk{}, err
	}
	select {
	case c := <-s.source.chunks:
		s.now = s.clock.read()
		return c, nil
	case <-s.ctx.Done():
		return chunk{}, context.Cause(s.ctx)
	}
}

// turn takes a cost for what arrived at an instant, when it is due. The clock is
// read only when the last reading is not enough, since one wake-up lets many
// lines go where they are due every few nanoseconds.
func (s *stream) turn(arrived, cost int64) error {
	if cost == 0 {
		return nil
	}
	if s.gate.lag == 0 || arrived > s.now {
		s.now = s.clock.read()
	}
	t := s.gate.instant(arrived, s.now)
	d := s.gate.take(time.Unix(0, t), "", cost)
	for due, spent := after(t, d), d.Allowed; !spent; {
		if err := s.sleep(due); err != nil {
			return err
		}
		due, spent = s.gate.spend("", t, s.now, cost)
	}
	return nil
}

// sleep waits until an instant, if that is still to come. What was let go is
// written first.
func (s *stream) sleep(until int64) error {
	if s.now >= until {
		return nil
	}
	if s.now = s.clock.read(); s.now >= until {
		return nil
	}
	if err := s.sink.flush(); err != nil {
		return err
	}
	select {
	case <-s.alarm(until):
		s.now = s.clock.read()
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// alarm is ready at an instant. There is one at a time.
func (s *stream) alarm(at int64) <-chan time.Time {
	left := time.Duration(at - s.clock.read())
	if s.timer == nil {
		s.timer = time.NewTimer(left)
	} else {
		s.timer.Reset(left)
	}
	return s.timer.C
}
