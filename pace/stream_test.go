package pace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

const kib, mib = 1 << 10, 1 << 20

// watched counts the moved bytes and fails if they ever exceed the burst and the rate.
type watched struct {
	t           *testing.T
	start       time.Time
	rate, burst int64
	moved       int64
	last        time.Duration // the time of the last byte
	largest     int
	in          io.Reader
	takes       int // of a Write, if not 0
}

func (w *watched) move(n int) {
	w.moved += int64(n)
	w.largest = max(w.largest, n)
	if n > 0 {
		w.last = time.Since(w.start)
	}
	if most := w.burst + int64(w.last)*w.rate/int64(time.Second); w.moved > most {
		w.t.Errorf("%d bytes had moved after %v, want at most %d: they were not paid for", w.moved, w.last, most)
	}
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	w.move(n)
	return n, err
}

func (w *watched) Write(p []byte) (int, error) {
	n := len(p)
	if w.takes > 0 {
		n = min(n, w.takes)
	}
	w.move(n)
	return n, nil
}

func watch(t *testing.T, rate, burst int64) (*weir.Limiter, *watched) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(rate), Burst: burst})
	return lim, &watched{t: t, start: time.Now(), rate: rate, burst: burst}
}

func TestPacedReaderMovesWhatWasPaidForAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, source := watch(t, kib, kib)
		source.in = bytes.NewReader(make([]byte, 10*kib+512)) // chunks of 512, then of the burst
		n, err := io.Copy(io.Discard, pace.Reader(t.Context(), lim, source))
		if n != 10*kib+512 || err != nil {
			t.Fatalf("copied %d, %v; want 10.5 KiB", n, err)
		}
		if source.last != 9500*time.Millisecond {
			t.Errorf("the last byte came after %v, want 9.5s: 1 KiB at once and 9.5 at 1 KiB/s", source.last)
		}
		if took := time.Since(source.start); took != 10500*time.Millisecond {
			t.Errorf("the end was known after %v, want 10.5s: one chunk later", took)
		}
		if left := lim.Peek(0).Remaining; left != kib {
			t.Errorf("%d bytes left to spend, want %d: the chunk that found the end was given back", left, kib)
		}
	})
}

func TestPacedWriterMovesWhatWasPaidForAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, sink := watch(t, kib, kib)
		n, err := pace.Writer(t.Context(), lim, sink).Write(make([]byte, 10*kib))
		if n != 10*kib || err != nil {
			t.Fatalf("wrote %d, %v; want 10 KiB", n, err)
		}
		if took := time.Since(sink.start); took != 9*time.Second || sink.last != took {
			t.Errorf("returned after %v, want 9s: 1 KiB at once and 9 at 1 KiB/s", took)
		}
		if sink.largest != kib {
			t.Errorf("the largest write was %d bytes, want the burst, %d", sink.largest, kib)
		}
	})
}

func TestPacedStreamsMoveTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := make([]byte, 100_000)
		for i := range want {
			want[i] = byte(i * i >> 7)
		}
		for _, source := range []io.Reader{bytes.NewReader(want), iotest.OneByteReader(bytes.NewReader(want)), iotest.DataErrReader(bytes.NewReader(want))} {
			lim, _ := watch(t, 50_000, 3000)
			var got bytes.Buffer
			n, err := io.Copy(pace.Writer(t.Context(), lim, &got), pace.Reader(t.Context(), lim, source))
			if n != int64(len(want)) || err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%T: copied %d, %v, equal %v", source, n, err, bytes.Equal(got.Bytes(), want))
			}
		}
	})
}

// bits delivers each bytes with every Read.
type bits struct{ each, left int }

func (b *bits) Read(p []byte) (int, error) {
	n := min(b.each, b.left, len(p))
	b.left -= n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestPacedReaderPaysWithWhatAShortReadLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, source := watch(t, 1000, 1000)
		source.in = &bits{each: 100, left: 3000}
		n, err := io.Copy(io.Discard, pace.Reader(t.Context(), lim, source))
		if n != 3000 || err != nil {
			t.Fatalf("copied %d, %v; want 3000", n, err)
		}
		// Each read begins with 512 bytes paid, so the last begins when 2900 + 512 are paid.
		if want := 2412 * time.Millisecond; source.last != want {
			t.Errorf("30 reads of 100 bytes took %v, want %v", source.last, want)
		}
		if took, left := time.Since(source.start), lim.Peek(0).Remaining; took != 2512*time.Millisecond || left != 512 {
			t.Errorf("the end came after %v with %d left to spend, want 2.512s and the 512 that found it", took, left)
		}
	})
}

func TestPacedWriterGivesBackWhatAShortWriteLeft(t *testing.T) {
	lim, sink := watch(t, 1, 1000)
	sink.takes = 300
	n, err := pace.Writer(t.Context(), lim, sink).Write(make([]byte, 1000))
	if n != 300 || !errors.Is(err, io.ErrShortWrite) || lim.Peek(0).Remaining != 700 {
		t.Errorf("wrote %d, %v, %d left; want 300, a short write, 700 left", n, err, lim.Peek(0).Remaining)
	}
}

func TestPacedStreamsStopWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		lim, sink := watch(t, kib, kib)
		n, err := pace.Writer(ctx, lim, sink).Write(make([]byte, 10*kib))
		if n != 2*kib || !errors.Is(err, context.Canceled) || time.Since(sink.start) != 1500*time.Millisecond {
			t.Errorf("wrote %d, %v after %v; want what was paid for in 1.5s, 2 KiB, and Canceled", n, err, time.Since(sink.start))
		}
		source := bytes.NewReader(make([]byte, kib))
		n, err = pace.Reader(ctx, lim, source).Read(make([]byte, kib))
		if n != 0 || !errors.Is(err, context.Canceled) || source.Len() != kib {
			t.Errorf("read %d, %v, %d left; want nothing read and Canceled", n, err, source.Len())
		}
		if left := lim.Peek(0).Remaining; left != kib/2 {
			t.Errorf("%d bytes left to spend, want half a second's: the cancelled cost nothing", left)
		}
	})
}

func TestPacedReaderAsksAnIdleSourceForLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, _ := watch(t, mib, mib)
		r, w := io.Pipe()
		go io.Copy(io.Discard, pace.Reader(t.Context(), lim, r))
		synctest.Wait()
		if held := mib - lim.Peek(0).Remaining; held != 512 {
			t.Errorf("a source that delivers nothing holds %d bytes, want 512", held)
		}
		w.Close()
		synctest.Wait()
		if left := lim.Peek(0).Remaining; left != mib {
			t.Errorf("%d bytes left after the end, want %d", left, mib)
		}
	})
}

func TestPacedReaderAsksForAboutAsMuchAsComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, _ := watch(t, mib, mib)
		r, w := io.Pipe()
		go io.Copy(io.Discard, pace.Reader(t.Context(), lim, r))
		moved := int64(0)
		for _, step := range []struct{ each, times, held int64 }{
			{100_000, 1, 32 * kib}, // as much as comes, at most 32 KiB
			{700, 50, 700},         // and no longer
		} {
			for range step.times {
				w.Write(make([]byte, step.each))
				moved += step.each
			}
			synctest.Wait()
			held := mib - lim.Peek(0).Remaining - moved // no time has passed
			if held < 1 || held > step.held {
				t.Errorf("after %d writes of %d bytes the reader holds %d, want 1 to %d", step.times, step.each, held, step.held)
			}
		}
		w.Close()
	})
}

func TestPacedReaderGivesBackWhatItHoldsWhenATurnIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, source := watch(t, 1000, 1000)
		source.in = &bits{each: 100, left: 1 << 20}
		lim.AllowN(488)
		ctx, cancel := context.WithCancel(t.Context())
		r := pace.Reader(ctx, lim, source)
		if n, err := r.Read(make([]byte, 4096)); n != 100 || err != nil {
			t.Fatalf("read %d, %v; want 100", n, err)
		}
		cancel()
		if n, err := r.Read(make([]byte, 4096)); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("read %d, %v; want Canceled", n, err)
		}
		if left := lim.Peek(0).Remaining; left != 412 {
			t.Errorf("%d left to spend, want 412: of 1000, 488 were taken elsewhere and 100 moved", left)
		}
	})
}

func TestPacedStreamsFollowAChangeOfTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, _ := watch(t, 10*kib, 10*kib)
		start := time.Now()
		time.AfterFunc(time.Second/2, func() {
			// A caller waits for 10 KiB, which can never fit from now on.
			if err := lim.SetLimit(weir.TokenBucket{Rate: weir.PerSecond(kib), Burst: kib}); err != nil {
				t.Error(err)
			}
		})
		n, err := pace.Writer(t.Context(), lim, io.Discard).Write(make([]byte, 20*kib))
		// At the change 10 KiB are spent and 5 have come back: the new bucket
		// lacks 5 KiB of its 1, and each further KiB takes a second.
		if want := 14500 * time.Millisecond; n != 20*kib || err != nil || time.Since(start) != want {
			t.Errorf("wrote %d, %v after %v; want 20 KiB after %v", n, err, time.Since(start), want)
		}
	})
}
