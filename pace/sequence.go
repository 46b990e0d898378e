package pace

import (
	"context"
	"fmt"
	"iter"
	"sync"
)

// Seq yields the values of seq, each when its turn comes, at a cost of 1.
//
// It stops when seq ends, when the consumer stops, or when a turn is refused
// because the context ended or the limiter was closed. The value that was
// refused is not yielded, and nothing was taken for it. The returned function
// tells the cases apart, as bufio.Scanner.Err does: after the loop it returns
// the error of the refusal, and nil if there was none.
//
//	urls, refused := pace.Seq(ctx, lim, urls)
//	for url := range urls {
//		…
//	}
//	if err := refused(); err != nil {
//
// The turn comes right before the value is yielded. So the time that the
// consumer takes counts as waiting, and a strict limit holds for what the
// consumer sees. A slot of a Concurrency is held until the consumer asks for the
// next value. Seq starts no goroutine.
//
// A consumer that collects values before it works on them, such as slices.Chunk
// or a batch insert, waits for each of them: a hundred at 10/s arrive within ten
// seconds, and the work on all of them then starts at once. If the work is done in chunks, pace the chunks.
func Seq[T any](ctx context.Context, p Pacer, seq iter.Seq[T]) (iter.Seq[T], func() error) {
	pairs, refused := Seq2(ctx, p, func(yield func(T, struct{}) bool) {
		seq(func(v T) bool { return yield(v, struct{}{}) })
	})
	return func(yield func(T) bool) {
		pairs(func(v T, _ struct{}) bool { return yield(v) })
	}, refused
}

// Seq2 works like Seq with pairs.
func Seq2[K, V any](ctx context.Context, p Pacer, seq iter.Seq2[K, V]) (iter.Seq2[K, V], func() error) {
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

// Chan passes on the values of in, each when its turn comes, at a cost of 1. It
// closes the returned channel when in is closed and drained, when the context
// ends, or when a turn is refused. The returned function then tells why, like
// that of Seq.
//
// Chan starts one goroutine, which ends when it closes the channel. A consumer
// that stops early must cancel the context; otherwise the goroutine leaks.
//
// While the consumer is away, the turn of one value comes and the value waits
// for it. The next value may follow that one at once. Use Seq if the limit must
// hold for what the consumer sees. The channel is unbuffered and should not be
// followed by a buffer, which fills at the rate of the limit and drains in a
// burst. A slot of a Concurrency is held until the consumer has received the
// value.
func Chan[T any](ctx context.Context, p Pacer, in <-chan T) (<-chan T, func() error) {
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
			return fmt.Errorf("pace: channel: waiting for a value: %w", ctx.Err())
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
			return fmt.Errorf("pace: channel: waiting for the consumer: %w", ctx.Err())
		}
	}
}

// refusal is the reason a paced sequence stopped.
type refusal struct {
	mu  sync.Mutex
	err error
}

// set reports whether there is an error.
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
