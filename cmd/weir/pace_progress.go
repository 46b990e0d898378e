package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8/decor"
)

// paceProgress shows the current rate, the mean rate and the total. It shows the time left if it knows the size of
// the input. The zero value shows nothing.
type paceProgress struct {
	*progress
	size int64 // of the input; 0 if unknown

	mu      sync.Mutex
	done    tally
	bytes   int64
	inBytes bool
	begun   time.Time
	recent  []tally // of the last few seconds
}

// tally is the amount done by an instant.
type tally struct {
	at     time.Time
	amount int64
}

// The current rate is the mean of about this time.
const recently = 5 * time.Second

// newPaceProgress returns a progress display if standard error is a terminal and the output is not.
func newPaceProgress(in io.Reader, out, errs io.Writer, inBytes bool) *paceProgress {
	p := &paceProgress{}
	if file, ok := out.(*os.File); !ok || !isTerminal(file) {
		p.progress = newProgress(errs)
	}
	p.begin(remaining(in), inBytes, time.Now())
	return p
}

func (p *paceProgress) begin(size int64, inBytes bool, now time.Time) {
	p.size, p.inBytes, p.begun = size, inBytes, now
	if p.progress == nil {
		return
	}
	p.next("pacing", size, decor.Any(func(decor.Statistics) string { return p.text(time.Now()) }))
}

// remaining returns the number of unread bytes of a regular file, or 0 for a pipe.
func remaining(in io.Reader) int64 {
	file, ok := in.(*os.File)
	if !ok {
		return 0
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	at, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return max(info.Size()-at, 0)
}

// moved counts written lines or bytes. It updates the bar outside the lock, because the bar may be waiting for the
// lock to draw its text.
func (p *paceProgress) moved(lines, bytes int64) {
	if p.progress != nil {
		p.bar.SetCurrent(p.count(lines, bytes))
	}
}

// count adds to the total and returns the number of bytes.
func (p *paceProgress) count(lines, bytes int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
	p.done.amount += lines
	if p.inBytes {
		p.done.amount = p.bytes
	}
	return p.bytes
}

// text returns the text after the bar.
func (p *paceProgress) text(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := max(now.Sub(p.begun).Seconds(), 1e-9)
	text := fmt.Sprintf("%s, now %s, mean %s", p.amount(float64(p.done.amount)), p.rate(p.rateNow(now)), p.rate(float64(p.done.amount)/took))
	if p.size > 0 && p.bytes > 0 {
		left := float64(p.size-p.bytes) / float64(p.bytes) * took
		text += fmt.Sprintf(", %s left", shortDuration(time.Duration(left*float64(time.Second)).Round(time.Second)))
	}
	return text
}

// rateNow returns the rate since the oldest of the recent tallies, of which it keeps about ten per second.
func (p *paceProgress) rateNow(now time.Time) float64 {
	for len(p.recent) > 1 && now.Sub(p.recent[1].at) >= recently {
		p.recent = p.recent[1:]
	}
	from := tally{at: p.begun}
	if len(p.recent) > 0 && now.Sub(p.begun) > recently {
		from = p.recent[0]
	}
	if n := len(p.recent); n == 0 || now.Sub(p.recent[n-1].at) >= recently/50 {
		p.recent = append(p.recent, tally{now, p.done.amount})
	}
	return float64(p.done.amount-from.amount) / max(now.Sub(from.at).Seconds(), 1e-9)
}

func (p *paceProgress) rate(perSecond float64) string {
	if p.inBytes {
		return p.amount(perSecond) + "/s"
	}
	return fmt.Sprintf("%.4g/s", perSecond)
}

func (p *paceProgress) amount(n float64) string {
	if p.inBytes {
		return fmt.Sprintf("% .1f", decor.SizeB1024(int64(n)))
	}
	return plural(int64(n), "line")
}
