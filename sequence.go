package weir

import (
	"context"
	"iter"
	"sync"
)

// Paced yields the values of seq, each when it is its turn, at a cost of 1.
//
// It stops when seq ends, when the consumer does, or when a turn is refused:
// the context ended, the limiter was closed. Then the value at hand is not
// yielded and nothing was taken for it. The function tells which it was, as
// bufio.Scanner.Err does: after the loop it returns the error of the refusal,
// and nil if there was none.
//
//	urls, refused := weir.Paced(ctx, lim, urls)
//	for url := range urls {
//		…
//	}
//	if err := refused(); err != nil {
//
// The turn comes right before the value is yielded, so the time that the
// consumer takes counts as waiting, and a strict limit holds for what the
// consumer sees. A Concurrency slot is held until the consumer asks for the next
// value. There is no goroutine.
//
// A consumer that takes several values before it works on them, such as
// slices.Chunk or a batch insert, waits for each of them: a hundred at 10/s come
// after ten seconds and are then worked on at once. Where the work is done by
// the chunk, pace the chunks.
func Paced[T any](ctx context.Context, p Pacer, seq iter.Seq[T]) (iter.Seq[T], func() error) {
	var why refusal
	return func(yield func(T) bool) {
		why.set(nil)
		t := turns{pacer: p}
		defer t.done()
		for v := range seq {
			if why.set(t.take(ctx, 1)) || !yield(v) {
				return
			}
			t.done()
		}
	}, why.get
}

// Paced2 is Paced for pairs.
func Paced2[K, V any](ctx context.Context, p Pacer, seq iter.Seq2[K, V]) (iter.Seq2[K, V], func() error) {
	var why refusal
	return func(yield func(K, V) bool) {
		why.set(nil)
		t := turns{pacer: p}
		defer t.done()
		for k, v := range seq {
			if why.set(t.take(ctx, 1)) || !yield(k, v) {
				return
			}
			t.done()
		}
	}, why.get
}

// PacedChan passes the values of in on, each when it is its turn, at a cost of
// 1. The channel that it returns is closed when in is and all was passed on,
// when the context ends, or when a turn is refused; the function then tells why,
// as that of Paced.
//
// One goroutine does it. It ends when the channel is closed, so a consumer that
// stops early cancels the context: it would else stay for ever.
//
// A consumer that was away finds one value ready, whose turn has come while it
// was, and the next may follow at once. Where the limit must hold for what the
// consumer sees, use Paced. The channel has no buffer, and wants none behind it:
// a buffer fills at the pace of the limit and empties in a burst. A Concurrency
// slot is held until the consumer has received the value.
func PacedChan[T any](ctx context.Context, p Pacer, in <-chan T) (<-chan T, func() error) {
	out := make(chan T)
	why := new(refusal)
	go func() {
		defer close(out)
		why.set(pass(ctx, p, in, out))
	}()
	return out, why.get
}

func pass[T any](ctx context.Context, p Pacer, in <-chan T, out chan<- T) error {
	t := turns{pacer: p}
	defer t.done()
	for {
		var v T
		var more bool
		select {
		case v, more = <-in:
		case <-ctx.Done():
			return waitEnded(ctx.Err())
		}
		if !more {
			return nil
		}
		if err := t.take(ctx, 1); err != nil {
			return err
		}
		select {
		case out <- v:
			t.done()
		case <-ctx.Done():
			t.unused(1)
			return waitEnded(ctx.Err())
		}
	}
}

// refusal is why a paced sequence stopped.
type refusal struct {
	mu  sync.Mutex
	err error
}

// set says whether there is an error.
func (r *refusal) set(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	return err != nil
}

func (r *refusal) get() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
