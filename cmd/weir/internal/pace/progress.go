package pace

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8/decor"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// progress shows the current rate, the mean rate and the total. It shows the time left if it knows the size of
// the input. The zero value shows nothing.
type progress struct {
	*cli.Progress
	size int64 // of the input; 0 if unknown

	mu      sync.Mutex
	done    int64 // lines or bytes
	bytes   int64
	failed  int64 // commands
	inBytes bool
	speed   cli.Speed
}

// newProgress returns a progress display if standard error is a terminal and the output is not.
func newProgress(in io.Reader, out, errs io.Writer, inBytes bool) *progress {
	p := &progress{}
	if file, ok := out.(*os.File); !ok || !cli.IsTerminal(file) {
		p.Progress = cli.NewProgress(errs, cli.ProgressDelay)
	}
	p.begin(remaining(in), inBytes, time.Now())
	return p
}

// newCommandProgress returns a display of the lines whose commands have ended, if standard error is a terminal. It begins
// at once, because command output can appear above a bar only if there is one.
func newCommandProgress(in io.Reader, errs io.Writer) *progress {
	p := &progress{Progress: cli.NewProgress(errs, 0)}
	p.begin(remaining(in), false, time.Now())
	return p
}

func (p *progress) begin(size int64, inBytes bool, now time.Time) {
	p.size, p.inBytes, p.speed.Begun = size, inBytes, now
	if p.Progress == nil {
		return
	}
	p.Next("pacing", size, decor.Any(func(decor.Statistics) string { return p.text(time.Now()) }))
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
func (p *progress) moved(lines, bytes int64) {
	if p.Progress != nil {
		p.Bar.SetCurrent(p.count(lines, bytes))
	}
}

// ended counts a line whose command has ended.
func (p *progress) ended(line []byte, failed bool) {
	if failed {
		p.mu.Lock()
		p.failed++
		p.mu.Unlock()
	}
	p.moved(1, int64(len(line)+1))
}

// count adds to the total and returns the number of bytes.
func (p *progress) count(lines, bytes int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
	p.done += lines
	if p.inBytes {
		p.done = p.bytes
	}
	return p.bytes
}

// text returns the text after the bar.
func (p *progress) text(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := max(now.Sub(p.speed.Begun).Seconds(), 1e-9)
	text := fmt.Sprintf("%s, now %s, mean %s", p.amount(float64(p.done)), p.rate(p.speed.Now(now, p.done)), p.rate(float64(p.done)/took))
	if p.failed > 0 {
		text += fmt.Sprintf(", %s failed", cli.Thousands(p.failed))
	}
	if p.size > 0 && p.bytes > 0 {
		left := float64(p.size-p.bytes) / float64(p.bytes) * took
		text += fmt.Sprintf(", %s left", cli.Duration(time.Duration(left*float64(time.Second)).Round(time.Second)))
	}
	return text
}

func (p *progress) rate(perSecond float64) string {
	if p.inBytes {
		return p.amount(perSecond) + "/s"
	}
	return fmt.Sprintf("%.4g/s", perSecond)
}

func (p *progress) amount(n float64) string {
	if p.inBytes {
		return fmt.Sprintf("% .1f", decor.SizeB1024(int64(n)))
	}
	return cli.Plural(int64(n), "line")
}
