// Package unpack reads logs that zstd has compressed. Those of gzip are the business of internal/accesslog, which knows only the
// standard library.
package unpack

import (
	"bufio"
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"
)

// magic begins what zstd writes.
var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// mostWindow bounds the memory of a reader, in bytes: zstd --long needs as much.
const mostWindow = 128 << 20

// Reader returns a reader of the plain bytes. It looks at the first bytes when it is first read, and not before.
func Reader(from io.Reader) io.Reader { return &reader{from: from} }

type reader struct {
	from, plain io.Reader
	unpacking   *zstd.Decoder
}

func (r *reader) Read(p []byte) (int, error) {
	if r.plain == nil {
		if err := r.begin(); err != nil {
			return 0, err
		}
	}
	n, err := r.plain.Read(p)
	if err != nil && r.unpacking != nil {
		r.unpacking.Close()
	}
	return n, err
}

func (r *reader) begin() (err error) {
	first := bufio.NewReaderSize(r.from, 64<<10)
	if head, _ := first.Peek(len(magic)); !bytes.Equal(head, magic) {
		r.plain = first
		return nil
	}
	r.unpacking, err = zstd.NewReader(first, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
	r.plain = r.unpacking
	return err
}
