package memory

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
)

const bufferBytes = 512 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writer collects bytes until they are flushed, and computes the checksum. After an error it writes nothing.
type writer struct {
	w   io.Writer
	buf []byte
	sum uint32
	err error
}

func (w *writer) byte(b byte)     { w.buf = append(w.buf, b) }
func (w *writer) bytes(b []byte)  { w.buf = append(w.buf, b...) }
func (w *writer) uint32(n uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, n) }
func (w *writer) uint64(n uint64) { w.buf = binary.LittleEndian.AppendUint64(w.buf, n) }

func (w *writer) clocks(c clock.Pair) {
	w.uint64(uint64(c.Clock))
	w.uint64(uint64(c.Wall))
}

func (w *writer) rate(r algorithm.Rate) {
	w.uint64(uint64(r.Unit))
	w.uint64(uint64(r.Den))
	w.uint64(uint64(r.NoDelay))
}

// text writes a name, which is short.
func (w *writer) text(s string) {
	w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *writer) numbers(numbers []uint64) {
	w.buf = slices.Grow(w.buf, 8*len(numbers))
	at := len(w.buf)
	w.buf = w.buf[:at+8*len(numbers)]
	for i, n := range numbers {
		binary.LittleEndian.PutUint64(w.buf[at+8*i:at+8*i+8], n)
	}
}

func (w *writer) flush() {
	w.sum = crc32.Update(w.sum, castagnoli, w.buf)
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

func (w *writer) checksum() {
	w.flush()
	w.uint32(w.sum)
	w.flush()
}

// reader reads what a writer wrote. After an error it reads only zeros.
type reader struct {
	r      *bufio.Reader
	space  []byte
	sum    uint32
	offset int64 // offset of the next byte
	err    error
}

func newReader(r io.Reader) *reader {
	return &reader{r: bufio.NewReaderSize(r, bufferBytes), space: make([]byte, maxRows*maxRowBytes)}
}

// next returns the next n bytes, valid until the next call. n is at most len(space).
func (r *reader) next(n int) []byte {
	b := r.space[:n]
	if r.err == nil {
		switch _, err := io.ReadFull(r.r, b); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			r.refuse("ends too early: it is not whole")
		default:
			r.err = err
		}
	}
	if r.err != nil {
		clear(b)
		return b
	}
	r.sum = crc32.Update(r.sum, castagnoli, b)
	r.offset += int64(n)
	return b
}

// end verifies the checksum and that nothing follows.
func (r *reader) end() {
	want := r.sum
	if got := r.uint32(); r.err == nil && got != want {
		r.damaged("its checksum is %08x, not %08x", want, got)
	}
	if r.err == nil {
		if _, err := r.r.ReadByte(); err == nil {
			r.refuse("goes on after its end")
		} else if !errors.Is(err, io.EOF) {
			r.err = err
		}
	}
}

// refuse ends the reading. The first reason stays.
func (r *reader) refuse(format string, a ...any) {
	if r.err == nil {
		r.err = &SnapshotError{Offset: r.offset, Reason: fmt.Sprintf(format, a...)}
	}
}

func (r *reader) damaged(format string, a ...any) {
	r.refuse("is damaged: "+format, a...)
}

func (r *reader) byte() byte         { return r.next(1)[0] }
func (r *reader) uint32() uint32     { return binary.LittleEndian.Uint32(r.next(4)) }
func (r *reader) int64() int64       { return int64(binary.LittleEndian.Uint64(r.next(8))) }
func (r *reader) clocks() clock.Pair { return clock.Pair{Clock: r.int64(), Wall: r.int64()} }

func (r *reader) rate() algorithm.Rate {
	return algorithm.Rate{Unit: r.int64(), Den: r.int64(), NoDelay: r.int64()}
}

func (r *reader) text() string {
	return string(r.next(int(binary.LittleEndian.Uint16(r.next(2)))))
}
