package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vbauerster/mpb/v8/decor"
)

func TestPaceShowsRatesTotalAndTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		p := &paceProgress{progress: progressOn(&screen, progressDelay)}
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
		p.stop()
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
		p := &paceProgress{progress: progressOn(io.Discard, 0)}
		p.begin(1<<30, false, time.Now())
		for range 2000 {
			time.Sleep(150 * time.Millisecond) // the bar draws this often
			for range 10 {
				p.moved(1, 10)
			}
		}
		p.stop()
		if want := int64(20_000); p.done != want {
			t.Errorf("got %d lines counted, want %d", p.done, want)
		}
	})
}

func TestPacePrintsBytesInUnits(t *testing.T) {
	p := &paceProgress{progress: progressOn(io.Discard, progressDelay)}
	defer p.stop()
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
	p := newPaceProgress(strings.NewReader("x"), io.Discard, &errs, false)
	p.moved(1, 1)
	p.stop()
	if p.progress != nil || errs.Len() > 0 {
		t.Errorf("got progress %v and %q, want none", p.progress, errs.String())
	}
}

func TestPaceShowsFailedCommands(t *testing.T) {
	p := &paceProgress{progress: progressOn(io.Discard, 0)}
	defer p.stop()
	start := time.Now()
	p.begin(10, false, start)
	p.ended([]byte("a"), false)
	p.ended([]byte("b"), true)
	const want = "2 lines, now 1/s, mean 1/s, 1 failed, 3s left"
	if got := p.text(start.Add(2 * time.Second)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Output of commands is printed above the bar, even before the bar is drawn for the first time.
func TestOutputAboveTheBarIsNotLost(t *testing.T) {
	var screen, after bytes.Buffer
	p := progressOn(&screen, 0)
	p.next("pacing", 0, decor.Any(func(decor.Statistics) string { return "" }))
	above := &aboveBar{p.bars, &after}
	_, _ = above.Write([]byte("first\nlast"))
	p.stop()
	_, _ = above.Write([]byte("late"))
	if !strings.Contains(screen.String(), "first\nlast\n") || after.String() != "late" {
		t.Errorf("got %q, and %q after the progress ended, want all output", screen.String(), after.String())
	}
}
