package fetch

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8/decor"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/fetch"
)

// tally counts what becomes of the URLs, and shows it on a terminal while the command runs.
type tally struct {
	*cli.Progress
	begun time.Time

	mu       sync.Mutex
	outcomes map[fetch.Outcome]int64
	expected int64 // URLs of the list so far, links included
	earlier  int64 // of these, done by an earlier run
	complete bool  // the list has been read to its end
	rest     fetch.Progress
	bytes    int64
	pages    cli.Speed
	traffic  cli.Speed
}

// newTally returns a tally that shows progress if standard error is a terminal.
func newTally(errs io.Writer) *tally {
	t := &tally{Progress: cli.NewProgress(errs, cli.ProgressDelay)}
	t.begin(time.Now())
	return t
}

func (t *tally) begin(now time.Time) {
	t.begun, t.outcomes = now, map[fetch.Outcome]int64{}
	t.pages.Begun, t.traffic.Begun = now, now
	if t.Progress != nil {
		t.Next("fetching", 0, decor.Any(func(decor.Statistics) string { return t.text(time.Now()) }))
	}
}

// listed counts URLs to fetch.
func (t *tally) listed(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected += n
}

// known counts a URL of the list that an earlier run has done.
func (t *tally) known() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.earlier++
}

// whole says that the list has ended.
func (t *tally) whole() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete = true
}

// add counts a result. It updates the bar outside the lock, because the bar may wait for the lock to draw its text.
func (t *tally) add(r fetch.Result) {
	t.mu.Lock()
	t.outcomes[r.Outcome]++
	t.expected += int64(len(r.Links))
	done, of := t.ended(), t.expected-t.earlier
	t.mu.Unlock()
	if t.Progress != nil {
		t.Bar.SetTotal(max(of, done+1), false)
		t.Bar.SetCurrent(done)
	}
}

// ended returns the number of results.
func (t *tally) ended() (n int64) {
	for _, of := range t.outcomes {
		n += of
	}
	return n
}

// counting counts the bytes that are read.
func (t *tally) counting(r io.Reader) io.Reader { return &countingReader{r, t} }

type countingReader struct {
	io.Reader
	tally *tally
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	r.tally.bytes += int64(n)
	return n, err
}

// text returns the text after the bar: what is done, the rates of the last seconds, and the time left.
func (t *tally) text(now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := t.ended()
	left := max(t.expected-t.earlier-done, 0)
	text := fmt.Sprintf("%s, %d left, now %.3g/s and %s/s", cli.Plural(done, "URL"), left,
		t.pages.Now(now, done), bytesText(int64(t.traffic.Now(now, t.bytes))))
	if failed := t.outcomes[fetch.Failed] + t.outcomes[fetch.Refused]; failed > 0 {
		text += fmt.Sprintf(", %d not fetched", failed)
	}
	if rest := t.rest.Left(); t.complete && rest > 0 {
		text += fmt.Sprintf(", about %s", cli.Duration(max(rest.Round(time.Second), time.Second)))
	}
	return text
}

// summary returns a line about a run. If it came to its end, URLs without a result stand in the list more than once.
func (t *tally) summary(now time.Time, toTheEnd bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := "left"
	if toTheEnd {
		rest = "listed again"
	}
	text := fmt.Sprintf("weir: fetched %s, %s, in %s", cli.Plural(t.outcomes[fetch.Fetched], "page"), bytesText(t.bytes), cli.Duration(now.Sub(t.begun).Round(100*time.Millisecond)))
	for _, part := range []struct {
		n    int64
		what string
	}{
		{t.outcomes[fetch.Skipped], "skipped"}, {t.outcomes[fetch.Refused], "refused"}, {t.outcomes[fetch.Failed], "failed"}, {t.earlier, "done before"}, {t.expected - t.earlier - t.ended(), rest},
	} {
		if part.n > 0 {
			text += fmt.Sprintf("; %d %s", part.n, part.what)
		}
	}
	return text
}

// bytesText formats a number of bytes: 25 bytes, 200.0 KiB.
func bytesText(n int64) string {
	if n < 1<<10 {
		return cli.Plural(n, "byte")
	}
	return fmt.Sprintf("% .1f", decor.SizeB1024(n))
}

// unfinished says what was not fetched although it was asked for, and what helps. It says nothing if there is no such URL.
func (t *tally) unfinished() (text string, hints []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	if n := t.outcomes[fetch.Failed]; n > 0 {
		parts, hints = append(parts, cli.Plural(n, "URL")+" failed"), []string{"the same command tries again"}
	}
	if n := t.outcomes[fetch.Refused]; n > 0 {
		parts = append(parts, cli.Plural(n, "URL")+" refused by the server")
	}
	return strings.Join(parts, ", "), hints
}
