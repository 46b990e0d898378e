package weir

import (
	"context"
	"errors"
	"io"
)

// The chunks that streams pay for. A stream asks for little first, so that many
// idle ones do not pay for much that they will not move soon, and for twice as
// much each time it was all moved.
const (
	leastChunk = 512
	mostChunk  = 32 << 10
)

// PacedReader reads from r at so many units a second, a byte costing 1. It pays
// before it reads, in chunks that fit the limit and are 32 KiB at most. What it
// paid and r did not deliver pays for the next Read, and comes back when a Read
// ends with an error or the end of r. Streams that share p share its limit, by
// weight if they are in classes: InClass.
//
// When a turn is refused, or the context ends while it waits, Read returns the
// error and has read nothing. A Read that is under way in r is not interrupted.
//
// Whatever pays before it knows the cost pays too much at times. A stream whose
// source delivers nothing holds what it paid, one chunk at most; and the end of
// r is found by a Read that was paid for as well, so it can be known one chunk
// later than the last byte. A paced writer knows the cost and does neither.
//
// It is for streams: where r delivers packets, a chunk may cut one off. It is not
// safe for concurrent use.
func PacedReader(ctx context.Context, p Pacer, r io.Reader) io.Reader {
	return &pacedReader{toll: newToll(ctx, p), source: r, next: leastChunk}
}

// PacedWriter writes to w at so many units a second, a byte costing 1. It pays
// before it writes, splits what is larger than the limit takes or than 32 KiB,
// and gives back what it paid and w did not take. Streams that share p share its
// limit, by weight if they are in classes: InClass.
//
// When a turn is refused, or the context ends while it waits, Write returns how
// much was written before, and the error. It is not safe for concurrent use.
func PacedWriter(ctx context.Context, p Pacer, w io.Writer) io.Writer {
	return &pacedWriter{toll: newToll(ctx, p), sink: w}
}

type pacedReader struct {
	toll
	source io.Reader
	next   int // what to have paid for before the next Read
	paid   int // and not yet moved
}

func (r *pacedReader) Read(p []byte) (n int, err error) {
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
	if r.held.any() {
		defer r.release() // slots are held while it moves
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

// adapt asks for more where the source filled the room it was given, and for
// about as much as came where it did not.
func (r *pacedReader) adapt(room, n int) {
	switch {
	case n < room:
		r.next = max(n, leastChunk)
	case room >= r.next:
		r.next = min(2*r.next, mostChunk)
	}
}

func (r *pacedReader) release() {
	r.unused(r.paid)
	r.done()
	r.paid = 0
}

type pacedWriter struct {
	toll
	sink io.Writer
}

func (w *pacedWriter) Write(p []byte) (written int, err error) {
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
func (w *pacedWriter) chunk(p []byte) (n int, err error) {
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

// toll is what a stream pays at.
type toll struct {
	turns
	ctx  context.Context // a Read has no context of its own
	most int             // what the limit takes at once, as far as is known
}

func newToll(ctx context.Context, p Pacer) toll {
	return toll{turns: turns{pacer: p}, ctx: ctx, most: mostChunk}
}

// pay pays for n bytes, or for as many as the limit takes at once.
func (t *toll) pay(n int) (paid int, err error) {
	for {
		paid = min(n, t.most)
		err = t.take(t.ctx, int64(paid))
		var tooMuch *CostError
		if !errors.As(err, &tooMuch) || tooMuch.Capacity < 1 || tooMuch.Capacity >= int64(paid) {
			return paid, err
		}
		t.most = int(tooMuch.Capacity)
	}
}
