package filter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func onMemory(limits ...weir.Limit) Options {
	return Options{Limits: limits, Engine: weir.NewMemory(weir.MemoryOptions{})}
}

func TestALineWaitsForSeveralLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		in := strings.Repeat("x\n", 30)
		run(t, Options{Limits: []weir.Limit{perSecond(10, 1), weir.SlidingLog{Rate: weir.PerMinute(20)}}}, strings.NewReader(in), out)
		if out.text() != in {
			t.Errorf("got %q, want the input", out.text())
		}
		for i, w := range out.writes {
			due := time.Duration(i) * 100 * time.Millisecond
			if i >= 20 {
				due += time.Minute - 2*time.Second
			}
			if w.at < due {
				t.Errorf("line %d went at %v, before %v", i, w.at, due)
			}
		}
		if took := out.writes[len(out.writes)-1].at; took > 63*time.Second {
			t.Errorf("30 lines at 10/s and 20/m took %v, want about 61s", took)
		}
	})
}

func TestSharedLinesGoInTheirOrderAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int64{20, 1000} {
			var in bytes.Buffer
			for i := range 200 {
				_, _ = fmt.Fprintln(&in, i)
			}
			want := in.String()
			out := newRecorder()
			run(t, onMemory(perSecond(rate, 1)), &in, out)
			if out.text() != want {
				t.Errorf("at %d/s the lines are not those of the input, in order: %q", rate, out.text())
			}
			want199 := 199 * time.Second / time.Duration(rate)
			if took := out.writes[len(out.writes)-1].at; took < want199 || took > want199+2*time.Millisecond {
				t.Errorf("200 lines at %d/s took %v, want %v", rate, took, want199)
			}
		}
	})
}

// Each key has its own bytes. A line above the burst waits until all of it is paid.
func TestBytesOfEachKeyHaveTheirOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		in := "a" + strings.Repeat("x", 98) + "\nb1\na2\n" // 100 bytes, 3, 3
		o := onMemory(perSecond(10, 5))
		o.Chunk, o.Key = 5, letters
		run(t, o, strings.NewReader(in), out)
		want := map[string]time.Duration{"b1\n": 0, "a2\n": 9800 * time.Millisecond}
		for _, w := range out.writes {
			due, known := want[w.text]
			if !known {
				due = 9500 * time.Millisecond // 100 bytes, of which the first 5 go at once
			}
			if w.at != due {
				t.Errorf("%.10q went at %v, want %v", w.text, w.at, due)
			}
		}
		if got := len(out.text()); got != len(in) {
			t.Errorf("%d bytes were written, want %d", got, len(in))
		}
	})
}

func TestSharedKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		o := onMemory(perSecond(10, 1))
		o.Key, o.Fair = letters, true
		run(t, o, strings.NewReader("a1\na2\na3\na4\nb1\nb2\n"), out)
		if got, want := out.text(), "a1\na2\nb1\na3\nb2\na4\n"; got != want && got != "a1\nb1\na2\nb2\na3\na4\n" {
			t.Errorf("got %q, want keys in turn, like %q", got, want)
		}
	})
}

// breaking returns an engine whose first takes fail.
func breaking(left int) weir.Engine {
	return weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake && left > 0 {
			left--
			return weir.Answer{}, errors.New("no connection")
		}
		return next(ctx, c)
	})
}

func TestAFailingEngineIsAskedAgainForAWhile(t *testing.T) {
	for failures, ends := range map[int]bool{3: false, 1000: true} {
		synctest.Test(t, func(t *testing.T) {
			f, err := New(Options{
				Limits: only(perSecond(10, 1)), Engine: breaking(failures),
				Patience: 10 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			out, start := newRecorder(), time.Now()
			err = f.Run(t.Context(), strings.NewReader("a\nb\n"), out)
			var failed *EngineError
			if ends != errors.As(err, &failed) || !ends && (err != nil || out.text() != "a\nb\n") {
				t.Errorf("after %d failures: %v, wrote %q", failures, err, out.text())
			}
			if took := time.Since(start); ends && (took < 10*time.Second || took > 11*time.Second) {
				t.Errorf("Run ended after %v, want the patience of 10s", took)
			}
		})
	}
}

func TestAnInterruptedSharedFilterLeavesNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		o := onMemory(weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1})
		o.Key = letters
		f, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		in, write := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx, in, io.Discard) }()
		for range 20 {
			_, _ = io.WriteString(write, "a\nb\nc\n")
		}
		synctest.Wait()
		if got := f.terms.queue.Waiting(); got != 3 {
			t.Errorf("%d callers wait, want one for each of 3 keys", got)
		}
		interrupt()
		if err := <-done; !errors.Is(err, context.Canceled) || f.terms.queue.Waiting() != 0 {
			t.Errorf("Run ended with %v and %d waiting callers, want the interrupt and none", err, f.terms.queue.Waiting())
		}
		_ = write.Close()
	})
}
