package pace

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

func TestPaceShowsRatesTotalAndTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		p := &progress{Progress: cli.ProgressOn(&screen, cli.ProgressDelay)}
		p.begin(1000, false, time.Now())
		wait := time.Second - time.Millisecond // so that lines are counted before the bar is drawn at a full second
		for range 10 {                         // 2 lines of 5 bytes a second, then 4
			time.Sleep(wait)
			p.moved(2, 10)
			wait = time.Second
		}
		for range 10 {
			time.Sleep(time.Second)
			p.moved(4, 20)
		}
		time.Sleep(500 * time.Millisecond)
		p.Stop()
		for _, want := range []string{"pacing", "4 lines", "now 2/s, mean 2/s", "60 lines", "now 4", "left"} {
			if !strings.Contains(screen.String(), want) {
				t.Errorf("the screen never showed %q: %q", want, screen.String())
			}
		}
	})
}

// The bar asks for its text while lines are being counted.
func TestPaceCountsWhileTheBarIsDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &progress{Progress: cli.ProgressOn(io.Discard, 0)}
		p.begin(1<<30, false, time.Now())
		for range 2000 {
			time.Sleep(150 * time.Millisecond) // the bar draws this often
			for range 10 {
				p.moved(1, 10)
			}
		}
		p.Stop()
		if want := int64(20_000); p.done != want {
			t.Errorf("got %d lines counted, want %d", p.done, want)
		}
	})
}

func TestPacePrintsBytesInUnits(t *testing.T) {
	p := &progress{Progress: cli.ProgressOn(io.Discard, cli.ProgressDelay)}
	defer p.Stop()
	start := time.Now()
	p.begin(4<<20, true, start)
	p.moved(0, 1<<20)
	const want = "1.0 MiB, now 512.0 KiB/s, mean 512.0 KiB/s, 6s left"
	if got := p.text(start.Add(2 * time.Second)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPaceIsSilentWithoutATerminal(t *testing.T) {
	var errs bytes.Buffer
	p := newProgress(strings.NewReader("x"), io.Discard, &errs, false)
	p.moved(1, 1)
	p.Stop()
	if p.Progress != nil || errs.Len() > 0 {
		t.Errorf("got progress %v and %q, want none", p.Progress, errs.String())
	}
}

func TestPaceShowsFailedCommands(t *testing.T) {
	p := &progress{Progress: cli.ProgressOn(io.Discard, 0)}
	defer p.Stop()
	start := time.Now()
	p.begin(10, false, start)
	p.ended([]byte("a"), false)
	p.ended([]byte("b"), true)
	const want = "2 lines, now 1/s, mean 1/s, 1 failed, 3s left"
	if got := p.text(start.Add(2 * time.Second)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
