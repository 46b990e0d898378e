// Package collect keeps a crawl in a folder: a file for each page, and a journal from which the crawl goes on after
// an interruption.
package collect

import (
	"context"
	"crypto/sha256"
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

// identity is what a Folder remembers of a URL.
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
