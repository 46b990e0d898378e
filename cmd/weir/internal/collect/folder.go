// Package collect keeps a crawl in a folder: a file for each page, and a journal that lets the crawl go on after an
// interruption.
package collect

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/weirflow/weir/fetch"
)

// Folder is a folder with pages and their journal. Its methods are safe for concurrent use.
type Folder struct {
	dir     string
	journal *os.File
	saved   sync.Map // the file of each URL that has been saved and not yet recorded

	recording sync.Mutex
	broken    error // of the first write to the journal that failed

	// Of earlier crawls; not changed after Open.
	done     map[identity]struct{}
	left     []fetch.Link
	followed int
	ignored  []int
}

// identity identifies a URL in a Folder.
type identity [16]byte

func identify(url string) identity {
	sum := sha256.Sum256([]byte(url))
	return identity(sum[:16])
}

// Open opens a folder, and makes it if there is none. It reads the journal of earlier crawls, which lock keeps other
// processes from.
func Open(dir string, lock func(*os.File) error) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, JournalName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, journal: file, done: map[identity]struct{}{}}
	if err = lock(file); err == nil {
		err = f.load()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// Close closes the journal.
func (f *Folder) Close() error { return f.journal.Close() }

// Known reports whether a URL was done by an earlier crawl.
func (f *Folder) Known(url string) bool {
	_, done := f.done[identify(url)]
	return done
}

// Left returns the links that earlier crawls found and did not finish.
func (f *Folder) Left() []fetch.Link { return f.left }

// Followed returns the number of links that earlier crawls found.
func (f *Folder) Followed() int { return f.followed }

// Ignored returns the numbers of the journal's lines that are too long to be read. Their pages are fetched again.
func (f *Folder) Ignored() []int { return f.ignored }

// Save writes the body of a page to its file. It follows the links of the page if it may. A file has its name once it
// is whole. If the page cannot have its name, the error is a *fetch.PageError.
func (f *Folder) Save(p *fetch.Page, follow bool) error {
	name, err := f.nameOf(p)
	if err != nil {
		return err
	}
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := savePage(path, p, follow); err != nil {
		if concernsName(err) {
			err = &fetch.PageError{Err: err}
		}
		return err
	}
	f.saved.Store(p.Asked, name)
	return nil
}

// savePage writes a page to its file.
func savePage(path string, p *fetch.Page, follow bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	part, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	err = errors.Join(copyPage(part, p, follow), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
}

// concernsName reports whether an error says that a file cannot have its name. Other errors are those of the disk.
func concernsName(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrExist, syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL, syscall.EILSEQ}, func(of error) bool {
		return errors.Is(err, of)
	})
}

// nameOf names a page by the URL of the list, so that two URLs that lead to one page do not share a file.
func (f *Folder) nameOf(p *fetch.Page) (string, error) {
	asked, err := p.URL.Parse(p.Asked)
	if err != nil {
		return "", fmt.Errorf("the URL %q cannot name a file: %w", p.Asked, err)
	}
	return fetch.FileName(asked, p.Header.Get("Content-Type")), nil
}

// copyPage copies the body to a file, and looks for links on the way.
func copyPage(to io.Writer, p *fetch.Page, follow bool) error {
	p.Body = io.TeeReader(p.Body, to)
	if follow {
		for link, err := range p.Links() {
			if err != nil {
				return err
			}
			p.Follow(link)
		}
	}
	_, err := io.Copy(io.Discard, p.Body)
	return err
}

// Page returns a function for fetch.Options.Page. It follows links if mayFollow.
func (f *Folder) Page(mayFollow bool) func(context.Context, *fetch.Page) error {
	return func(_ context.Context, p *fetch.Page) error { return f.Save(p, mayFollow) }
}

// Record appends what became of a URL to the journal, in one write, and returns the line. A page was saved before.
// After an error it writes nothing more, so that a part of a line stays the last one, which Open cuts off.
func (f *Folder) Record(r fetch.Result) ([]byte, error) {
	l := Line{Result: r}
	if name, saved := f.saved.LoadAndDelete(r.URL); saved && r.Outcome == fetch.Fetched {
		l.File, _ = name.(string)
	}
	line, err := l.text()
	if err != nil {
		return nil, err
	}
	f.recording.Lock()
	defer f.recording.Unlock()
	if f.broken == nil {
		_, f.broken = f.journal.Write(line)
	}
	return line, f.broken
}

// load reads the journal, and cuts off a last line that was not written to its end.
func (f *Folder) load() error {
	whole, err := f.read(bufio.NewReaderSize(f.journal, 64<<10))
	if err != nil {
		return err
	}
	if err := f.journal.Truncate(whole); err != nil {
		return err
	}
	if _, err := f.journal.Seek(whole, io.SeekStart); err != nil {
		return err
	}
	if whole == 0 {
		_, err = io.WriteString(f.journal, firstLine)
	}
	return err
}

// read reads whole lines, and returns their length. It ignores a line that is longer than a line may be: its URL is not
// done.
func (f *Folder) read(from *bufio.Reader) (whole int64, err error) {
	var links []fetch.Link
	for n := 1; ; n++ {
		line, length, err := readLine(from)
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
		case n == 1:
			err = checkFirst(line)
		case length > maxLine:
			f.ignored = append(f.ignored, n)
		default:
			links, err = f.learn(line, links)
		}
		if err != nil {
			return 0, &JournalError{Line: n, Reason: err}
		}
		whole += length
	}
	f.keep(links)
	return whole, nil
}

// learn takes what a line says. A URL is done unless another attempt could end otherwise: if it failed, or if it was
// skipped before a request was sent.
func (f *Folder) learn(line []byte, links []fetch.Link) ([]fetch.Link, error) {
	var l Line
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	switch l.Outcome {
	case fetch.Fetched, fetch.Refused:
		f.done[identify(l.URL)] = struct{}{}
	case fetch.Skipped:
		if l.Status != 0 {
			f.done[identify(l.URL)] = struct{}{}
		}
	case fetch.Failed:
	default:
		return nil, fmt.Errorf("outcome %q is unknown", l.Outcome)
	}
	for _, link := range l.Links {
		links = append(links, fetch.Link{URL: link, Depth: l.Depth + 1})
	}
	return links, nil
}

// keep keeps the links that are not done.
func (f *Folder) keep(links []fetch.Link) {
	f.followed = len(links)
	for _, link := range links {
		if _, done := f.done[identify(link.URL)]; !done {
			f.left = append(f.left, link)
		}
	}
}
