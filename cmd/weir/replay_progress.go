package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progressDelay is how long a command runs before it shows progress.
const progressDelay = 2 * time.Second

// progress shows how far a long command has got, one bar after another, on a terminal. A nil progress shows nothing.
type progress struct {
	terminal *os.File // or nil
	bars     *mpb.Progress
	bar      *mpb.Bar
	show     *time.Timer // or nil without a delay
	ended    sync.Once
}

func newProgress(errs io.Writer, delay time.Duration) *progress {
	file, ok := errs.(*os.File)
	if !ok || !isTerminal(file) {
		return nil
	}
	p := progressOn(file, delay)
	p.terminal = file
	return p
}

// isTerminal reports whether the file is a character device other than /dev/null.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !isNull(file)
}

func progressOn(w io.Writer, delay time.Duration) *progress {
	p := &progress{}
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
func (p *progress) reading(name string, r io.Reader) io.Reader {
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
	p.next("reading "+shorten(printable(name)), size, after)
	return &countedReader{r, p.bar}
}

// stage returns a callback that updates a bar with the amount done and the total.
func (p *progress) stage(name string) func(done, of int64) {
	if p == nil {
		return nil
	}
	p.next(name, 0, decor.Percentage())
	bar := p.bar
	return func(done, of int64) {
		bar.SetTotal(of, false)
		bar.SetCurrent(done)
	}
}

// next replaces the current bar with a new one. A total of 0 means unknown.
func (p *progress) next(name string, total int64, after decor.Decorator) {
	if p.bar != nil {
		p.bar.Abort(true)
	}
	p.bar = p.bars.AddBar(total, mpb.PrependDecorators(decor.Name(name+" ")), mpb.AppendDecorators(after), mpb.BarRemoveOnComplete())
}

// stop removes the bar.
func (p *progress) stop() {
	if p == nil {
		return
	}
	p.ended.Do(func() {
		if p.bar != nil {
			p.bar.Abort(true)
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
