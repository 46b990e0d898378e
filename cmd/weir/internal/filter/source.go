package filter

import (
	"context"
	"io"
)

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
