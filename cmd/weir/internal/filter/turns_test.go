package filter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// letters returns the first letter as the key of lines like "a1".
func letters(line []byte) []byte { return line[:min(1, len(line))] }

func TestKeysDoNotHoldUpOneAnother(t *testing.T) {
	checkKeyed(t, Options{Limits: only(perSecond(10, 1)), Key: letters}, "a1\na2\na3\nb1\nc1\nb2\n",
		"0 \"a1\\nb1\\nc1\\n\"\n100 \"a2\\nb2\\n\"\n200 \"a3\\n\"\n")
}

func TestStrictKeysDoNotHoldUpOneAnother(t *testing.T) {
	checkKeyed(t, Options{Limits: only(weir.RateGate{Rate: weir.PerSecond(2)}), Key: letters}, "a1\na2\na3\nb1\na4\na5\nb2\n",
		"0 \"a1\\na2\\nb1\\nb2\\n\"\n1000 \"a3\\na4\\n\"\n2000 \"a5\\n\"\n")
}

// At 10/s over 1 s a cold key begins with gaps of 280 and 240 ms.
func TestEachKeyWarmsUpByItself(t *testing.T) {
	checkKeyed(t, Options{Limits: only(weir.WarmUp{Rate: weir.PerSecond(10), Over: time.Second}), Key: letters}, "a1\na2\na3\nb1\nb2\n",
		"0 \"a1\\nb1\\n\"\n280 \"a2\\nb2\\n\"\n520 \"a3\\n\"\n")
}

func TestFairKeysTakeTurnsAtOnePace(t *testing.T) {
	checkKeyed(t, Options{Limits: only(perSecond(10, 1)), Key: letters, Fair: true}, "a1\na2\na3\nb1\nb2\nc1\n",
		"0 \"a1\\n\"\n100 \"b1\\n\"\n200 \"c1\\n\"\n300 \"a2\\n\"\n400 \"b2\\n\"\n500 \"a3\\n\"\n")
}

// Two lines are held, so the filter reads c1 only when there is room.
func TestNoMoreIsReadWhileAsManyLinesAsAllowedAreHeld(t *testing.T) {
	checkKeyed(t, Options{Limits: only(perSecond(10, 1)), Key: letters, Held: 2}, "a1\na2\na3\na4\nc1\n",
		"0 \"a1\\n\"\n100 \"a2\\n\"\n200 \"a3\\nc1\\n\"\n300 \"a4\\n\"\n")
}

func TestLineWithoutNewlineStaysTheLast(t *testing.T) {
	checkKeyed(t, Options{Limits: only(perSecond(10, 1)), Key: letters}, "a1\na2\nb1",
		"0 \"a1\\n\"\n100 \"a2\\nb1\"\n")
}

func checkKeyed(t *testing.T, o Options, in, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		run(t, o, strings.NewReader(in), out)
		if got := out.sorted(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

func TestLineThatComesWhileOthersWaitGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newRecorder()
		in := &slowReader{[]written{{0, "a1\na2\n"}, {250 * time.Millisecond, "b1\nc1\n"}}}
		run(t, Options{Limits: only(perSecond(1, 1)), Key: letters}, in, out)
		want := "0 \"a1\\n\"\n250 \"b1\\nc1\\n\"\n1000 \"a2\\n\"\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out, want)
		}
	})
}

// A line above the bound passes after all earlier lines, in one piece and before all later lines.
func TestLineLongerThanWhatIsHeldPassesInOnePiece(t *testing.T) {
	long := "b" + strings.Repeat("x", 3*MaxLine) + "\n"
	for _, end := range []string{"", "a4\na5\n", "a4\nunfinished"} {
		synctest.Test(t, func(t *testing.T) {
			out := newRecorder()
			run(t, Options{Limits: only(perSecond(10, 1)), Key: letters}, strings.NewReader("a1\na2\na3\n"+long+end), out)
			if want := "a1\na2\na3\n" + long + end; out.text() != want {
				t.Errorf("end %q: got %d bytes, want the input of %d", end, len(out.text()), len(want))
			}
		})
	}
}

// With random lines of random keys, no line is lost, each key keeps its order, and each line passes at the first
// instant that its limit permits.
func TestEveryKeyIsInOrderAndOnTimeForRandomInput(t *testing.T) {
	for seed := range randtest.Seeds(t, 20, 20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var in bytes.Buffer
			want := map[byte][]string{}
			for i := range 200 {
				line := fmt.Sprintf("%c %d\n", 'a'+random.IntN(5), i)
				in.WriteString(line)
				want[line[0]] = append(want[line[0]], line)
			}
			out := newRecorder()
			run(t, Options{Limits: only(perSecond(8, 1)), Key: letters}, &in, out)
			got := map[byte][]string{}
			for _, w := range out.writes {
				for line := range strings.Lines(w.text) {
					if due := time.Duration(len(got[line[0]])) * 125 * time.Millisecond; w.at != due {
						t.Fatalf("seed %d: %q went at %v, want %v", seed, line, w.at, due)
					}
					got[line[0]] = append(got[line[0]], line)
				}
			}
			for key, lines := range want {
				if !slices.Equal(got[key], lines) {
					t.Errorf("seed %d: got %q, want %q", seed, got[key], lines)
				}
			}
		})
	}
}

// The input never ends and has one key. The held lines stay within the bound.
func TestWhatIsHeldIsBounded(t *testing.T) {
	for name, in := range map[string]string{
		"many lines": strings.Repeat("a\n", 1<<20),
		"long lines": strings.Repeat("a"+strings.Repeat("x", MaxLine/2)+"\n", 64),
		"one line":   strings.Repeat("x", 64<<20),
	} {
		synctest.Test(t, func(t *testing.T) {
			source := strings.NewReader("a\na\na\n" + in)
			out := newRecorder()
			f, err := New(Options{Limits: only(weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}), Key: letters})
			if err != nil {
				t.Fatal(err)
			}
			sink, written := io.Pipe()
			defer sink.Close()
			done := make(chan error, 1)
			go func() { done <- f.Run(t.Context(), source, io.MultiWriter(out, written)) }()
			if _, err := io.ReadFull(sink, make([]byte, 2)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			most := int64(maxHeldSize + 2*MaxLine)
			if name == "many lines" {
				most = MaxHeld*2 + 3*chunkSize
			}
			if read := source.Size() - int64(source.Len()); read > most {
				t.Errorf("%s: %d bytes were read while one line was released, want at most %d", name, read, most)
			}
			sink.Close()
			<-done // the next line, an hour later, finds the output closed
		})
	}
}
