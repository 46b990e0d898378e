package collect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

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

// readLine returns a line with its end, and its length. It cuts a line that is longer than maxLine.
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
