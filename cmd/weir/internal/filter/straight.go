package filter

import "bytes"

// straight cuts pieces that pass in their order: lines, or chunks of bytes. A line costs 1 at its beginning. Its
// continuation in later data is free, so a line may have any length.
type straight struct {
	*stream
	size   int  // bytes in a piece; 0 means lines
	inside bool // the last line goes on
}

// mostPieces bounds the held pieces.
const mostPieces = 16384

func (s *straight) look() error {
	for len(s.rest) > 0 && s.turns.held < mostPieces {
		p := s.piece()
		s.rest = s.rest[len(p.data):]
		passed := false
		if s.turns.held == 0 {
			var err error
			if passed, err = s.pass("", p); err != nil {
				return err
			}
		}
		if !passed {
			s.turns.add("", p)
		}
	}
	if len(s.rest) == 0 && s.chunk.data != nil {
		s.finish(!s.turns.keep(s.chunk.data))
	}
	s.full = s.turns.held >= mostPieces
	return nil
}

// piece returns the next piece.
func (s *straight) piece() piece {
	if s.size > 0 {
		data := s.rest[:min(len(s.rest), s.size)]
		return piece{data: data, cost: int64(len(data))}
	}
	p := piece{data: s.rest, cost: 1, lines: 1}
	if s.inside {
		p.cost, p.lines = 0, 0
	}
	end := bytes.IndexByte(s.rest, '\n')
	if s.inside = end < 0; !s.inside {
		p.data = s.rest[:end+1]
	}
	return p
}
