package accesslog

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

const pipeLine = `{"time":1697062451,"ip":"192.0.2.1"}` + "\n"

// slowly writes a line at once and one a minute later, and leaves the pipe open.
func slowly(t *testing.T, into *io.PipeWriter) {
	for range 2 {
		if _, err := io.WriteString(into, pipeLine); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	}
}

func TestASlowPipeIsReadAfterTwoSecondsAndUntilItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		r, err := NewReader(Options{Done: done})
		if err != nil {
			t.Fatal(err)
		}
		out, in := io.Pipe()
		go slowly(t, in)
		begin := time.Now()
		var after []time.Duration
		ended := make(chan error)
		go func() {
			ended <- r.Read("pipe", out, func(*Entry) (string, error) {
				after = append(after, time.Since(begin))
				return "", nil
			})
		}()
		time.Sleep(time.Hour)
		close(done)
		if err := <-ended; err != nil || len(after) != 2 || after[0] != 2*time.Second || after[1] != time.Minute {
			t.Errorf("got entries after %v, %v, want 2s and 1m0s", after, err)
		}
		in.Close()
	})
}

func TestAPipeThatBeginsLateIsReadAtItsFirstLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		out, in := io.Pipe()
		go func() {
			time.Sleep(time.Minute)
			slowly(t, in)
			in.Close()
		}()
		begin := time.Now()
		var first time.Duration
		err = r.Read("pipe", out, func(*Entry) (string, error) {
			if first == 0 {
				first = time.Since(begin)
			}
			return "", nil
		})
		if err != nil || first != time.Minute || r.Lines() != 2 {
			t.Errorf("got the first of %d entries after %v, %v, want 2 after 1m0s", r.Lines(), first, err)
		}
	})
}

func TestALogThatFailsBeforeItsFormatIsKnownSaysSo(t *testing.T) {
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Read("log", nil, nil); err == nil || err.Error() != "read log: the reader is nil" {
		t.Errorf("got %v", err)
	}
}
