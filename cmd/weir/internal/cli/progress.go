package cli

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// ProgressDelay is how long a command runs before it shows progress.
const ProgressDelay = 2 * time.Second

// Progress shows how far a long command has got, one bar after another, on a terminal. A nil progress shows nothing.
type Progress struct {
	terminal *os.File // or nil
	bars     *mpb.Progress
	Bar      *mpb.Bar
	show     *time.Timer // or nil without a delay
	ended    sync.Once
}

// NewProgress shows progress after the delay if errs is a terminal, and otherwise returns nil.
func NewProgress(errs io.Writer, delay time.Duration) *Progress {
	file, ok := errs.(*os.File)
	if !ok || !IsTerminal(file) {
		return nil
	}
	p := ProgressOn(file, delay)
	p.terminal = file
	return p
}

// ProgressOn shows progress on w, as if it were a terminal.
func ProgressOn(w io.Writer, delay time.Duration) *Progress {
	p := &Progress{}
	options := []mpb.ContainerOption{mpb.WithOutput(w), mpb.WithAutoRefresh()}
	if delay > 0 {
		begin := make(chan struct{})
		p.show = time.AfterFunc(delay, func() { close(begin) })
		options = append(options, mpb.WithRenderDelay(begin))
	}
	p.bars = mpb.New(options...)
	return p
}

// reading wraps r to show a bar of the bytes read: those of the file, compressed or not. For a pipe, whose length is
// unknown, it shows a count without a bar.
func (p *Progress) reading(name string, r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	var size int64
	if file, ok := r.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	after := decor.CurrentKibiByte("% .1f")
	if size > 0 {
		after = decor.CountersKibiByte("% .1f / % .1f")
	}
	p.Next("reading "+Shorten(Printable(name)), size, after)
	return &countedReader{r, p.Bar}
}

// Stage returns a callback that updates a bar with the amount done and the total.
func (p *Progress) Stage(name string) func(done, of int64) {
	if p == nil {
		return nil
	}
	p.Next(name, 0, decor.Percentage())
	bar := p.Bar
	return func(done, of int64) {
		bar.SetTotal(of, false)
		bar.SetCurrent(done)
	}
}

// Next replaces the current bar with a new one. A total of 0 means unknown.
func (p *Progress) Next(name string, total int64, after decor.Decorator) {
	if p.Bar != nil {
		p.Bar.Abort(true)
	}
	p.Bar = p.bars.AddBar(total, mpb.PrependDecorators(decor.Name(name+" ")), mpb.AppendDecorators(after), mpb.BarRemoveOnComplete())
}

// Stop removes the bar.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	p.ended.Do(func() {
		if p.Bar != nil {
			p.Bar.Abort(true)
		}
		p.bars.Wait()
		if p.show != nil {
			p.show.Stop()
		}
	})
}

// countedReader adds the bytes read to a bar.
type countedReader struct {
	io.Reader
	bar *mpb.Bar
}

func (r *countedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.bar.IncrBy(n)
	return n, err
}

// Speed is how fast an amount grows.
type Speed struct {
	Begun  time.Time
	recent []tally // of the last few seconds
}

// tally is the amount done by an instant.
type tally struct {
	at     time.Time
	amount int64
}

// The current rate is the mean of about this time.
const recently = 5 * time.Second

// Now returns the rate since the oldest of the recent tallies; it keeps about ten per second.
func (s *Speed) Now(now time.Time, amount int64) float64 {
	for len(s.recent) > 1 && now.Sub(s.recent[1].at) >= recently {
		s.recent = s.recent[1:]
	}
	from := tally{at: s.Begun}
	if len(s.recent) > 0 && now.Sub(s.Begun) > recently {
		from = s.recent[0]
	}
	if n := len(s.recent); n == 0 || now.Sub(s.recent[n-1].at) >= recently/50 {
		s.recent = append(s.recent, tally{now, amount})
	}
	return float64(amount-from.amount) / max(now.Sub(from.at).Seconds(), 1e-9)
}

// Above returns a writer of w that prints whole lines above the bar if w is the terminal of p.
func (p *Progress) Above(w io.Writer) io.Writer {
	file, ok := w.(*os.File)
	if p == nil || p.terminal == nil || !ok {
		return w
	}
	info, err := file.Stat()
	shown, showing := p.terminal.Stat()
	if err != nil || showing != nil || !os.SameFile(info, shown) {
		return w
	}
	return &aboveBar{p.bars, file}
}

type aboveBar struct {
	bars *mpb.Progress
	file io.Writer
}

func (a *aboveBar) Write(b []byte) (int, error) {
	text := b
	if !bytes.HasSuffix(b, []byte("\n")) {
		text = append(bytes.Clone(b), '\n')
	}
	if _, err := a.bars.Write(text); err == nil {
		return len(b), nil
	}
	return a.file.Write(b) // the progress has ended
}
