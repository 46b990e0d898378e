// Package rategate is the code of docs/from/rategate.md: what users of .NET's RateGate write with Weir. Its test runs it in virtual
// time with the numbers of the article that introduced RateGate.
package rategate

import (
	"cmp"
	"context"
	"io"
	"iter"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// Loop performs an action n times, one after the other.
func Loop(ctx context.Context, gate *weir.Limiter, n int, action func(i int)) error {
	for i := range n {
		if err := gate.Wait(ctx); err != nil {
			return err
		}
		action(i)
	}
	return nil
}

// Parallel performs an action n times, each on a goroutine of its own. All share the gate.
func Parallel(ctx context.Context, gate *weir.Limiter, n int, action func(i int)) error {
	var all sync.WaitGroup
	failed := make(chan error, n)
	for i := range n {
		all.Go(func() {
			if err := gate.Wait(ctx); err != nil {
				failed <- err
				return
			}
			action(i)
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// Sequence performs an action for each value of a sequence, which the gate paces.
func Sequence[T any](ctx context.Context, gate *weir.Limiter, values iter.Seq[T], action func(T)) error {
	paced, stopped := pace.Seq(ctx, gate, values)
	for v := range paced {
		action(v)
	}
	return stopped()
}

// Chunks shows the trap of PLINQ: it collects a chunk of paced values, and then performs all of their actions at once.
func Chunks[T any](ctx context.Context, gate *weir.Limiter, values iter.Seq[T], size int, action func(T)) error {
	paced, stopped := pace.Seq(ctx, gate, values)
	for chunk := range chunksOf(paced, size) {
		var all sync.WaitGroup
		for _, v := range chunk {
			all.Go(func() { action(v) })
		}
		all.Wait()
	}
	return stopped()
}

// ChunksThatPass performs the same actions at the pace of the gate: the values come in chunks, and each action passes the gate.
func ChunksThatPass[T any](ctx context.Context, gate *weir.Limiter, values iter.Seq[T], size int, action func(T)) error {
	for chunk := range chunksOf(values, size) {
		if err := Parallel(ctx, gate, len(chunk), func(i int) { action(chunk[i]) }); err != nil {
			return err
		}
	}
	return nil
}

func chunksOf[T any](values iter.Seq[T], size int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		var chunk []T
		for v := range values {
			if chunk = append(chunk, v); len(chunk) == size {
				if !yield(chunk) {
					return
				}
				chunk = nil
			}
		}
		if len(chunk) > 0 {
			yield(chunk)
		}
	}
}

// Bandwidth is 200 KB a second for two classes, which share it evenly while both are busy.
func Bandwidth() (*weir.Limiter, error) {
	return weir.NewWith(weir.TokenBucket{Rate: weir.PerSecond(200_000), Burst: 20_000}, weir.Options{Weights: []int64{1, 1}})
}

// Download copies the pages of fast and slow sites under one limit of bytes. A class of slow pages and a class of fast ones share it
// evenly while both have pages waiting.
func Download(ctx context.Context, bytes *weir.Limiter, fast, slow []io.Reader) (n int64, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for class, pages := range [][]io.Reader{fast, slow} {
		all.Go(func() {
			copied, failed := io.Copy(io.Discard, pace.Reader(ctx, pace.InClass(bytes, class), io.MultiReader(pages...)))
			mu.Lock()
			defer mu.Unlock()
			n += copied
			err = cmp.Or(err, failed)
		})
	}
	all.Wait()
	return n, err
}
