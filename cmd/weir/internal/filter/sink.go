package filter

import (
	"bufio"
	"io"
)

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
