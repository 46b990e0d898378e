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
	now    int64 // the last reading of the clock
	gate   *gate
	shared *Shared // instead of the gate, or nil
	source *source
	sink   *sink
	timer  *time.Timer
}

// straight passes the pieces in order, each when it is due.
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

// cutter returns the length of the first piece of data, its cost, and the number of lines that begin in it.
type cutter func(data []byte) (n int, cost, lines int64)

// chunks cuts pieces of up to most bytes. Each byte costs 1.
func chunks(most int) cutter {
	return func(data []byte) (int, int64, int64) {
		n := min(len(data), most)
		return n, int64(n), 0
	}
}

// lines cuts lines. A line costs 1 at its beginning; its continuation in later data is free, so a line may have any
// length.
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

// next returns the next chunk. It writes released lines before it waits.
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

// turn waits until the cost of a piece that arrived at an instant is due, and spends it. It reads the clock only if
// the last reading is too early, because at high rates one wake-up releases many lines.
func (s *stream) turn(arrived, cost int64) error {
	if cost == 0 {
		return nil
	}
	if s.shared != nil {
		if err := s.sink.flush(); err != nil {
			return err
		}
		return s.shared.pay(s.ctx, "", cost)
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

// sleep waits until an instant. It writes released lines before it waits.
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

// alarm returns a channel that is ready at an instant. Only one alarm is set at a time.
func (s *stream) alarm(at int64) <-chan time.Time {
	left := time.Duration(at - s.clock.read())
	if s.timer == nil {
		s.timer = time.NewTimer(left)
	} else {
		s.timer.Reset(left)
	}
	return s.timer.C
}
