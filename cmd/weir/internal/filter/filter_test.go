package filter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// written is one Write and its time.
type written struct {
	at   time.Duration
	text string
}

// recorder keeps the writes. A write can take time.
type recorder struct {
	start  time.Time
	writes []written
	delay  func(write int) time.Duration
}

func newRecorder() *recorder { return &recorder{start: time.Now()} }

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, written{time.Since(r.start), string(p)})
	if r.delay != nil {
		time.Sleep(r.delay(len(r.writes)))
	}
	return len(p), nil
}

func (r *recorder) text() string {
	var all strings.Builder
	for _, w := range r.writes {
		all.WriteString(w.text)
	}
	return all.String()
}

// String returns each write with its time in milliseconds.
func (r *recorder) String() string {
	var all strings.Builder
	for _, w := range r.writes {
		fmt.Fprintf(&all, "%g %q\n", float64(w.at)/1e6, w.text)
	}
	return all.String()
}

// sorted returns the lines of each instant, in order of the alphabet: lines of several keys may pass in any order.
func (r *recorder) sorted() string {
	merged := &recorder{}
	for _, w := range r.writes {
		if last := len(merged.writes) - 1; last >= 0 && merged.writes[last].at == w.at {
			merged.writes[last].text += w.text
		} else {
			merged.writes = append(merged.writes, w)
		}
	}
	for i, w := range merged.writes {
		lines := slices.Sorted(strings.Lines(w.text))
		merged.writes[i].text = strings.Join(lines, "")
	}
	return merged.String()
}

// slowReader delivers each text after a pause.
type slowReader struct{ steps []written }

func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.steps) == 0 {
		return 0, io.EOF
	}
	s := r.steps[0]
	r.steps = r.steps[1:]
	time.Sleep(s.at)
	return copy(p, s.text), nil
}

func run(t *testing.T, o Options, in io.Reader, out io.Writer) {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), in, out); err != nil {
		t.Fatalf("Run: %v", err)
	}
}

func perSecond(n, burst int64) weir.Limit {
	return weir.TokenBucket{Rate: weir.PerSecond(n), Burst: burst}
}

func only(limit weir.Limit) []weir.Limit { return []weir.Limit{limit} }

func numbers(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintln(&all, i+1)
	}
	return all.String()
}

func byColumn(t *testing.T, n string) func([]byte) []byte {
	t.Helper()
	key, err := ParseKey(n, "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// 99 intervals of 50 ms, in virtual time.
func TestHundredLinesAtTwentyPerSecondGoEvery50Milliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		run(t, Options{Limits: only(perSecond(20, 1))}, strings.NewReader(numbers(100)), out)
		if len(out.writes) != 100 {
			t.Fatalf("got %d writes, want one for each of 100 lines:\n%v", len(out.writes), out)
		}
		for i, w := range out.writes {
			if want := time.Duration(i) * 50 * time.Millisecond; w.at != want || w.text != fmt.Sprintln(i+1) {
				t.Errorf("write %d: got %q at %v, want line %d at %v", i, w.text, w.at, i+1, want)
			}
		}
	})
}

func TestReleasesFollowTheLimit(t *testing.T) {
	tests := []struct {
		limit string
		lines int
		want  []int64 // ms
	}{
		{"token bucket 5/s burst 3", 6, []int64{0, 0, 0, 200, 400, 600}},
		{"token bucket 3/s burst 1", 4, []int64{0, 334, 667, 1000}},
		{"rate gate 2/s", 6, []int64{0, 0, 1000, 1000, 2000, 2000}},
		{"sliding log 2/s gap 100ms", 5, []int64{0, 100, 1000, 1100, 2000}},
		{"sliding log 2/s count denied", 5, []int64{0, 0, 1000, 1000, 2000}},
		{"leaky bucket 10/s queue 3", 4, []int64{0, 100, 200, 300}},
		{"leaky bucket 10/s queue 3 nodelay 2", 5, []int64{0, 0, 0, 100, 200}},
		{"leaky bucket 10/s", 3, []int64{0, 100, 200}},
		// Guava: the area below the line from 3 intervals to 1.
		{"bursty 5/s over 1s", 4, []int64{0, 200, 400, 600}},
		{"warm up 2/s over 4s", 7, []int64{0, 1375, 2500, 3375, 4000, 4500, 5000}},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			limit, err := weir.ParseLimit(test.limit)
			if err != nil {
				t.Fatal(err)
			}
			out := newRecorder()
			run(t, Options{Limits: only(limit)}, strings.NewReader(numbers(test.lines)), out)
			var got []int64
			for _, w := range out.writes {
				for range strings.Count(w.text, "\n") {
					got = append(got, int64((w.at+time.Millisecond-1)/time.Millisecond))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: got lines at %v ms, want %v", test.limit, got, test.want)
			}
		})
	}
}

func TestBytesGoInChunksAtTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		run(t, Options{Limits: only(perSecond(100, 10)), Chunk: 10}, strings.NewReader(strings.Repeat("x", 35)), out)
		want := "0 \"xxxxxxxxxx\"\n100 \"xxxxxxxxxx\"\n200 \"xxxxxxxxxx\"\n250 \"xxxxx\"\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out, want)
		}
	})
}

func TestChunkAboveTheBurstIsCutToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		run(t, Options{Limits: only(perSecond(10, 2)), Chunk: 1000}, strings.NewReader("abcde"), out)
		want := "0 \"ab\"\n200 \"cd\"\n300 \"e\"\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out, want)
		}
	})
}

func TestALineThatComesLateGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		in := &slowReader{[]written{{0, "a\nb\n"}, {700 * time.Millisecond, "c\nd"}, {time.Second, "d\n"}}}
		run(t, Options{Limits: only(perSecond(10, 1))}, in, out)
		want := "0 \"a\\n\"\n100 \"b\\n\"\n700 \"c\\n\"\n800 \"d\"\n1700 \"d\\n\"\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out, want)
		}
	})
}

// A million lines a second need far fewer writes: here wake-ups are 1 ms apart, because each write takes 1 ms.
func TestLinesDueTogetherAreWrittenTogetherAndTheRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := numbers(10_000)
		out := newRecorder()
		out.delay = func(int) time.Duration { return time.Millisecond }
		run(t, Options{Limits: only(perSecond(100_000, 1))}, strings.NewReader(in), out)
		if out.text() != in {
			t.Error("the output is not the input")
		}
		last := out.writes[len(out.writes)-1].at
		if len(out.writes) > 110 || last < 99*time.Millisecond || last > 101*time.Millisecond {
			t.Errorf("got %d writes, the last at %v; want about 100, the last after 100 ms", len(out.writes), last)
		}
	})
}

func TestTimeThatTheReaderOfTheOutputTakesIsNotMadeUpForInABurst(t *testing.T) {
	for _, key := range []func([]byte) []byte{nil, byColumn(t, "2")} {
		synctest.Test(t, func(t *testing.T) {
			out := newRecorder()
			out.delay = func(write int) time.Duration {
				if write == 2 {
					return 10 * time.Second
				}
				return 0
			}
			run(t, Options{Limits: only(perSecond(10, 1)), Key: key}, strings.NewReader(numbers(5)), out)
			want := "0 \"1\\n\"\n100 \"2\\n\"\n10100 \"3\\n\"\n10200 \"4\\n\"\n10300 \"5\\n\"\n"
			if out.String() != want {
				t.Errorf("key %v: got\n%swant\n%s", key != nil, out, want)
			}
		})
	}
}

// The writer stalls for a second, of which 20 ms return.
func TestAStallReturnsAtMostTheLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		out.delay = func(write int) time.Duration {
			if write == 2 {
				return time.Second
			}
			return 0
		}
		run(t, Options{Limits: only(perSecond(1000, 1))}, strings.NewReader(numbers(2000)), out)
		if got := strings.Count(out.writes[2].text, "\n"); got < 20 || got > 22 {
			t.Errorf("%d lines of 1000/s went at once after a stall of a second, want those of 20 ms", got)
		}
		if took := out.writes[len(out.writes)-1].at; took < 2900*time.Millisecond {
			t.Errorf("2000 lines at 1000/s with a stall of a second took %v, want 2.98s", took)
		}
	})
}

func TestStrictLimitCountsFromTheReleaseHoweverLateItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		out.delay = func(write int) time.Duration {
			if write == 1 {
				return 1005 * time.Millisecond
			}
			return 0
		}
		run(t, Options{Limits: only(weir.RateGate{Rate: weir.PerSecond(1)})}, strings.NewReader("a\nb\nc\n"), out)
		want := "0 \"a\\n\"\n1005 \"b\\n\"\n2005 \"c\\n\"\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out, want)
		}
	})
}

func TestInterruptedFilterHasWrittenAllReleasedLines(t *testing.T) {
	for _, key := range []func([]byte) []byte{nil, byColumn(t, "1")} {
		synctest.Test(t, func(t *testing.T) {
			why := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(150*time.Millisecond, func() { cancel(why) })
			f, err := New(Options{Limits: only(perSecond(10, 2)), Key: key})
			if err != nil {
				t.Fatal(err)
			}
			out := newRecorder()
			err = f.Run(ctx, strings.NewReader("a\na\na\na\n"), out)
			want := "0 \"a\\na\\n\"\n100 \"a\\n\"\n"
			if err != why || out.String() != want {
				t.Errorf("key %v: got %v and\n%swant %v and\n%s", key != nil, err, out, why, want)
			}
		})
	}
}

func TestInterruptNeedNotWaitForTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, feed := io.Pipe()
		defer feed.Close()
		f, err := New(Options{Limits: only(perSecond(10, 2))})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		out := newRecorder()
		go func() { done <- f.Run(ctx, in, out) }()
		fmt.Fprint(feed, "half a li")
		synctest.Wait()
		cancel()
		if err := <-done; err != context.Canceled || out.text() != "half a li" {
			t.Errorf("got %v and %q, want %v and all that was read", err, out.text(), context.Canceled)
		}
	})
}

func TestFailuresNameTheirSide(t *testing.T) {
	broken := errors.New("broken")
	for _, key := range []func([]byte) []byte{nil, byColumn(t, "1")} {
		synctest.Test(t, func(t *testing.T) {
			o := Options{Limits: only(perSecond(10, 1)), Key: key}
			out := newRecorder()
			checkFailure(t, o, io.MultiReader(strings.NewReader("a\na\n"), iotest.ErrReader(broken)), out, "read", broken)
			if got, want := out.String(), "0 \"a\\n\"\n100 \"a\\n\"\n"; got != want {
				t.Errorf("before the failure: got\n%swant\n%s", got, want)
			}
			checkFailure(t, o, strings.NewReader("a\nb\n"), failing{broken}, "write", broken)
			checkFailure(t, o, stuck{}, out, "read", io.ErrNoProgress)
		})
	}
}

func checkFailure(t *testing.T, o Options, in io.Reader, out io.Writer, op string, cause error) {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Run(t.Context(), in, out)
	var failed *StreamError
	if !errors.As(err, &failed) || failed.Op != op || !errors.Is(err, cause) {
		t.Errorf("got %v, want a StreamError of %s: %v", err, op, cause)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	key := byColumn(t, "1")
	for _, o := range []Options{
		{},
		{Limits: only(weir.Concurrency{Slots: 1, Lease: time.Second})},
		{Limits: only(perSecond(0, 1))},
		{Limits: only(weir.LeakyBucket{Rate: weir.PerSecond(1), NoDelay: 1 << 62})},
		{Limits: only(perSecond(1, 1)), Chunk: -1},
		{Limits: only(perSecond(1, 1)), Held: -1, Key: key},
		{Limits: only(perSecond(1, 1)), Fair: true},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v: got no error", o)
		}
	}
	if _, err := New(Options{Limits: only(weir.WarmUp{Rate: weir.PerSecond(1), Over: time.Second}), Key: key, Fair: true}); err != nil {
		t.Errorf("keys that share a warm-up: %v", err)
	}
}

func TestMovedAddsUpToAllLinesAndBytes(t *testing.T) {
	for name, key := range map[string]func([]byte) []byte{"no key": nil, "key": byColumn(t, "1")} {
		var lines, size int64
		in := numbers(5000) + "end"
		run(t, Options{
			Limits: only(perSecond(1e9, 1e9)), Key: key,
			Moved: func(l, b int64) { lines += l; size += b },
		}, strings.NewReader(in), io.Discard)
		if lines != 5001 || size != int64(len(in)) {
			t.Errorf("%s: got %d lines, %d bytes, want 5001 and %d", name, lines, size, len(in))
		}
	}
}

// FuzzOutputIsTheInput compares the bytes for any split of the input into reads.
func FuzzOutputIsTheInput(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint16(3))
	f.Add([]byte("\x00\xff\xfe\n\n\r\nno newline at the end"), uint16(1))
	f.Add([]byte("a line that is longer than a read\n\nand another\n"), uint16(0))
	f.Add(bytes.Repeat([]byte("long "), 300_000), uint16(8191))
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		for name, o := range map[string]Options{
			"lines":    {},
			"bytes":    {Chunk: 1 + int(cut)},
			"one key":  {Key: func([]byte) []byte { return nil }, Held: 1 + int(cut%7)},
			"one fair": {Key: func([]byte) []byte { return nil }, Fair: true, Held: 1 + int(cut%7)},
		} {
			o.Limits = only(perSecond(1e9, 1e12))
			var out bytes.Buffer
			run(t, o, &shortReader{in, int(cut) + 1}, &out)
			if !bytes.Equal(out.Bytes(), in) {
				t.Errorf("%s, reads of %d: got %d bytes %.100q, want %d bytes %.100q", name, cut+1, out.Len(), out.Bytes(), len(in), in)
			}
		}
	})
}

// shortReader delivers at most a few bytes per Read.
type shortReader struct {
	rest []byte
	most int
}

func (r *shortReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.most)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
