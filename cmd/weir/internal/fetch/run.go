package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/collect"
	"github.com/weirflow/weir/cmd/weir/internal/engineflags"
	"github.com/weirflow/weir/cmd/weir/internal/filelock"
	"github.com/weirflow/weir/fetch"
)

// job is a checked command line.
type job struct {
	dir     string
	follow  bool
	count   int
	options fetch.Options
}

// run fetches the URLs of the list into the folder.
func (j job) run(ctx context.Context, list io.Reader, out, errs io.Writer) error {
	folder, err := collect.Open(j.dir, lockJournal)
	if err != nil {
		return explainFolder(j.dir, err)
	}
	for _, line := range folder.Ignored() {
		fmt.Fprintf(errs, "weir: fetch: %s: line %d is too long to be read; its page is fetched again\n", j.journal(), line)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &run{job: j, folder: folder, stop: stop, tally: newTally(errs)}
	if file, is := out.(*os.File); !is || !cli.IsTerminal(file) {
		r.lines = out
	}
	o := j.options
	o.Known, o.Done, o.Page, o.Progress = r.known, r.done, r.page(), &r.tally.rest
	if o.Count = j.count - folder.Followed(); o.Count < 1 {
		o.Count, o.Depth = 1, 0
	}
	err = fetch.Run(ctx, r.links(list), o)
	r.tally.Stop()
	return errors.Join(r.explain(errs, err), folder.Close())
}

// run is one run of weir fetch.
type run struct {
	job
	folder *collect.Folder
	lines  io.Writer // nil if standard output is a terminal
	stop   context.CancelCauseFunc
	tally  *tally
	broken atomic.Pointer[error] // why the list could not be read to its end
}

// links returns the links that are left of earlier runs, and then the list.
func (r *run) links(list io.Reader) func(yield func(fetch.Link) bool) {
	return func(yield func(fetch.Link) bool) {
		for _, link := range r.folder.Left() {
			if !r.follow || link.Depth > r.options.Depth {
				continue
			}
			if r.tally.listed(1); !yield(link) {
				return
			}
		}
		lines := bufio.NewScanner(list)
		lines.Buffer(nil, maxListLine)
		for lines.Scan() {
			url := strings.TrimSpace(lines.Text())
			if url == "" || strings.HasPrefix(url, "#") {
				continue
			}
			if r.tally.listed(1); !yield(fetch.Link{URL: url}) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			r.broken.Store(&err)
		}
		r.tally.whole()
	}
}

// maxListLine bounds a line of the list.
const maxListLine = 64 << 10

// known reports whether an earlier run has done a URL, and counts those of the list.
func (r *run) known(link fetch.Link) bool {
	known := r.folder.Known(link.URL)
	if known && link.Depth == 0 {
		r.tally.known()
	}
	return known
}

// page saves a page, and counts the links that it follows.
func (r *run) page() func(context.Context, *fetch.Page) error {
	save := r.folder.Page(r.follow)
	return func(ctx context.Context, p *fetch.Page) error {
		p.Body = r.tally.counting(p.Body)
		return save(ctx, p)
	}
}

// done writes a line about a URL that has ended.
func (r *run) done(result fetch.Result) {
	if _, private := errors.AsType[*fetch.PrivateAddressError](result.Err); private {
		result.Reason += " (--allow-private)"
	}
	line, err := r.folder.Record(result)
	if err != nil {
		r.stop(fmt.Errorf("%s: %w", collect.JournalName, err))
		return
	}
	r.tally.add(result)
	if r.lines == nil {
		return
	}
	if _, err := r.lines.Write(line); err != nil {
		r.stop(&outputError{err})
	}
}

// outputError is an error of standard output.
type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

// explain ends the run with a summary, and with an error that says what to do next.
func (r *run) explain(errs io.Writer, err error) error {
	var output *outputError
	var engine *fetch.EngineError
	var lost *engineflags.Lost
	quiet := cli.Interrupted(err)
	if errors.As(err, &output) && quiet != nil {
		return quiet
	}
	fmt.Fprintln(errs, r.tally.summary(time.Now(), err == nil))
	const again = "the same command goes on where this one ended"
	switch {
	case quiet != nil:
		fmt.Fprintf(errs, "interrupted; %s\n", again)
		return quiet
	case errors.As(err, &output):
		return cli.Fail(fmt.Errorf("fetch: standard output: %w", output.error), "is the disk full, or was the output closed?", again)
	case errors.As(err, &engine):
		return engineflags.Explain("fetch", engine.Err)
	case errors.As(err, &lost):
		return engineflags.Explain("fetch", lost)
	case err != nil:
		return cli.Fail(errors.New(strings.Replace(err.Error(), "fetch: run: ", "fetch: ", 1)), "is the disk full, or the folder gone?", again)
	}
	if broken := r.broken.Load(); broken != nil {
		return cli.Fail(fmt.Errorf("fetch: the list of URLs: %w", *broken), "a line holds one URL of at most 8 KiB; the URLs before it were fetched")
	}
	if text, hints := r.tally.unfinished(); text != "" {
		return cli.Fail(errors.New("fetch: "+text), append(hints, "the reasons are in "+r.journal())...)
	}
	return nil
}

// journal returns the name of the journal for a person.
func (j job) journal() string { return j.dir + string(os.PathSeparator) + collect.JournalName }

// lockJournal keeps other processes from a journal. On a file system without locks it does nothing.
func lockJournal(file *os.File) error {
	if err := filelock.Try(file); errors.Is(err, filelock.ErrLocked) {
		return errInUse
	}
	return nil
}

var errInUse = errors.New("another weir fetch uses the folder")

// explainFolder explains why a folder cannot be used.
func explainFolder(dir string, err error) error {
	hint := "give a folder that this user may write to"
	if _, strange := errors.AsType[*collect.JournalError](err); strange {
		hint = "give another folder, or remove that line"
	}
	if errors.Is(err, errInUse) {
		hint = "wait for the other one, or give another folder"
	}
	return cli.Fail(fmt.Errorf("fetch: -o %s: %w", dir, err), hint)
}
