package pace

import (
	"context"
	"errors"
	"io"

	"github.com/weirflow/weir"
)

// The chunks that streams pay for. A stream starts with the smallest chunk, so
// that idle streams do not pay for bytes that they will not move soon. It
// doubles the chunk each time all of it was moved.
const (
	minChunk = 512
	maxChunk = 32 << 10
)

// Reader returns a reader of r that reads as many bytes a second as the limit
// admits units. It pays before it reads, in chunks that fit the limit, of at
// most 32 KiB. If r delivers less than was paid for, the rest pays for the next
// Read; it is given back when a Read ends with an error or at the end of r.
// Streams that share p share its limit, by weight if they are in classes: see
// InClass.
//
// When a turn is refused, or the context ends during the wait, Read returns the
// error and has read nothing. A Read that has begun in r is not interrupted.
//
// A Reader pays before it knows the cost, so at times it pays too much. A stream
// whose source delivers nothing holds what it paid, one chunk at most. The Read
// that finds the end of r was paid for as well, so the end may be known one
// chunk later than the last byte. A Writer knows the cost and does neither.
//
// It is for streams: if r delivers packets, a chunk may cut one off. It is not
// safe for concurrent use.
func Reader(ctx context.Context, p Pacer, r io.Reader) io.Reader {
	return &reader{toll: newToll(ctx, p), source: r, next: minChunk}
}

// Writer returns a writer to w that writes as many bytes a second as the limit
// admits units. It pays before it writes. A write above the capacity of the
// limit, or above 32 KiB, is split. Writer gives back the units for bytes that w did not take. Streams that
// share p share its limit, by weight if they are in classes: see InClass.
//
// When a turn is refused, or the context ends during the wait, Write returns
// the number of bytes written so far and the error. It is not safe for
// concurrent use.
func Writer(ctx context.Context, p Pacer, w io.Writer) io.Writer {
	return &writer{toll: newToll(ctx, p), sink: w}
}

type reader struct {
	toll
	source io.Reader
	next   int // bytes to have paid for before the next Read
	paid   int // bytes paid for and not yet moved
}

func (r *reader) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return r.source.Read(p)
	}
	if want := min(len(p), r.next); want > r.paid {
		more, err := r.pay(want - r.paid)
		if err != nil {
			r.release()
			return 0, err
		}
		r.paid += more
	}
	if r.slots.Held() {
		defer r.release() // releases the slots when the Read is over
	}
	room := min(len(p), r.paid)
	n, err = r.source.Read(p[:room])
	r.paid -= min(max(n, 0), room)
	r.adapt(room, n)
	if err != nil {
		r.release()
	}
	return n, err
}

// adapt pays for more next time if the source filled its room, and otherwise for about the amount that came.
func (r *reader) adapt(room, n int) {
	switch {
	case n < room:
		r.next = max(n, minChunk)
	case room >= r.next:
		r.next = min(2*r.next, maxChunk)
	}
}

func (r *reader) release() {
	r.unused(r.paid)
	r.done()
	r.paid = 0
}

type writer struct {
	toll
	sink io.Writer
}

func (w *writer) Write(p []byte) (written int, err error) {
	if len(p) == 0 {
		return w.sink.Write(p)
	}
	for written < len(p) && err == nil {
		var n int
		n, err = w.chunk(p[written:])
		written += n
	}
	return written, err
}

// chunk writes the part of p that it can pay for at once.
func (w *writer) chunk(p []byte) (n int, err error) {
	paid, err := w.pay(len(p))
	if err != nil {
		return 0, err
	}
	defer w.done()
	n, err = w.sink.Write(p[:paid])
	w.unused(paid - min(max(n, 0), paid))
	if n < paid && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

// toll takes the turns of one stream.
type toll struct {
	turns
	ctx     context.Context // the caller's, because Read has no context
	largest int             // the largest cost that the limit is known to admit
}

func newToll(ctx context.Context, p Pacer) toll {
	return toll{turns: turns{pacer: p}, ctx: ctx, largest: maxChunk}
}

// pay pays for n bytes, or for the most that the limit admits at once.
func (t *toll) pay(n int) (paid int, err error) {
	for {
		paid = min(n, t.largest)
		err = t.take(t.ctx, int64(paid))
		var tooMuch *weir.CostError
		if !errors.As(err, &tooMuch) || tooMuch.Capacity < 1 || tooMuch.Capacity >= int64(paid) {
			return paid, err
		}
		t.largest = int(tooMuch.Capacity)
	}
}
