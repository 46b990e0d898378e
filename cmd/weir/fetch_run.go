package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/collect"
	"github.com/weirflow/weir/fetch"
)

// fetchJob is a checked command line.
type fetchJob struct {
	dir     string
	follow  bool
	count   int
	options fetch.Options
}

// run fetches the URLs of the list into the folder.
func (j fetchJob) run(ctx context.Context, list io.Reader, out, errs io.Writer) error {
	folder, err := collect.Open(j.dir, lockJournal)
	if err != nil {
		return explainFolder(j.dir, err)
	}
	for _, line := range folder.Ignored() {
		fmt.Fprintf(errs, "weir: fetch: %s: line %d is too long to be read; its page is fetched again\n", j.journal(), line)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &fetchRun{fetchJob: j, folder: folder, stop: stop, tally: newFetchTally(errs)}
	if file, is := out.(*os.File); !is || !isTerminal(file) {
		r.lines = out
	}
	o := j.options
	o.Known, o.Done, o.Page, o.Progress = r.known, r.done, r.page(), &r.tally.rest
	if o.Count = j.count - folder.Followed(); o.Count < 1 {
		o.Count, o.Depth = 1, 0
	}
	err = fetch.Run(ctx, r.links(list), o)
	r.tally.stop()
	return errors.Join(r.explain(errs, err), folder.Close())
}

// fetchRun is one run of weir fetch.
type fetchRun struct {
	fetchJob
	folder *collect.Folder
	lines  io.Writer // nil if standard output is a terminal
	stop   context.CancelCauseFunc
	tally  *fetchTally
	broken atomic.Pointer[error] // why the list could not be read to its end
}

// links returns the links that are left of earlier runs, and then the list.
func (r *fetchRun) links(list io.Reader) func(yield func(fetch.Link) bool) {
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
func (r *fetchRun) known(link fetch.Link) bool {
	known := r.folder.Known(link.URL)
	if known && link.Depth == 0 {
		r.tally.known()
	}
	return known
}

// page saves a page, and counts the links that it follows.
func (r *fetchRun) page() func(context.Context, *fetch.Page) error {
	save := r.folder.Page(r.follow)
	return func(ctx context.Context, p *fetch.Page) error {
		p.Body = r.tally.counting(p.Body)
		return save(ctx, p)
	}
}

// done writes a line about a URL that has ended.
func (r *fetchRun) done(result fetch.Result) {
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
func (r *fetchRun) explain(errs io.Writer, err error) error {
	var output *outputError
	var interrupted *signalled
	if errors.As(err, &output) && errors.Is(err, syscall.EPIPE) {
		return &quietExit{128 + int(syscall.SIGPIPE)}
	}
	fmt.Fprintln(errs, r.tally.summary(time.Now(), err == nil))
	const again = "the same command goes on where this one ended"
	switch {
	case errors.As(err, &interrupted):
		fmt.Fprintf(errs, "interrupted; %s\n", again)
		return &quietExit{128 + int(interrupted.signal)}
	case errors.As(err, &output):
		return errorWithHint(fmt.Errorf("fetch: standard output: %w", output.error), "is the disk full, or was the output closed?", again)
	case err != nil:
		return errorWithHint(errors.New(strings.Replace(err.Error(), "fetch: run: ", "fetch: ", 1)), "is the disk full, or the folder gone?", again)
	}
	if broken := r.broken.Load(); broken != nil {
		return errorWithHint(fmt.Errorf("fetch: the list of URLs: %w", *broken), "a line holds one URL of at most 8 KiB; the URLs before it were fetched")
	}
	if text, hints := r.tally.unfinished(); text != "" {
		return errorWithHint(errors.New("fetch: "+text), append(hints, "the reasons are in "+r.journal())...)
	}
	return nil
}

// journal returns the name of the journal for a person.
func (j fetchJob) journal() string { return j.dir + string(os.PathSeparator) + collect.JournalName }

// lockJournal keeps other processes from a journal. On a file system without locks it does nothing.
func lockJournal(file *os.File) error {
	if err := tryLock(file); errors.Is(err, errLocked) {
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
	return errorWithHint(fmt.Errorf("fetch: -o %s: %w", dir, err), hint)
}
