package collect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/weirflow/weir/fetch"
)

// JournalName is the name of the journal in its folder.
const JournalName = "fetch.jsonl"

// The first line of a journal. A journal of another version is refused.
const (
	version   = 1
	firstLine = `{"weir_fetch":1}` + "\n"
)

// maxLine bounds a line of the journal. The links of a page are most of it.
const maxLine = 64 << 20

// Line is a line of the journal: what became of a URL, and the file of its page.
type Line struct {
	fetch.Result
	File string `json:"file,omitempty"`
}

// JournalError reports a journal that cannot be used.
type JournalError struct {
	Line   int
	Reason error
}

func (e *JournalError) Error() string {
	return fmt.Sprintf("%s, line %d: %v", JournalName, e.Line, e.Reason)
}
func (e *JournalError) Unwrap() error { return e.Reason }

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

// text returns the line with its end. If the links make it longer than a line may be, it has fewer of them.
func (l Line) text() ([]byte, error) {
	for {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(l)
		if err != nil || text.Len() <= maxLine || len(l.Links) == 0 {
			return text.Bytes(), err
		}
		l.Links = l.Links[:len(l.Links)/2]
	}
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

// readLine returns a line with its end, and its length. Of a line that is longer than maxLine it returns the beginning.
// The error is io.EOF if the text ends before the line does.
func readLine(from *bufio.Reader) (line []byte, length int64, err error) {
	for {
		part, err := from.ReadSlice('\n')
		if length += int64(len(part)); length <= maxLine {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, length, err
		}
	}
}

func checkFirst(line []byte) error {
	var first struct {
		Version int `json:"weir_fetch"`
	}
	if err := json.Unmarshal(line, &first); err != nil || first.Version == 0 {
		return errors.New("not a journal of weir fetch")
	}
	if first.Version != version {
		return fmt.Errorf("a journal of version %d, this program writes version %d", first.Version, version)
	}
	return nil
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
