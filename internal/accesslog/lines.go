package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// maxLine bounds a line, and with it the memory of a log.
const maxLine = 1 << 20

// readSize is how much is read at once, at least.
const readSize = 64 << 10

// errLate says that a log is slow.
var errLate = errors.New("the log is slow")

// piece is some whole lines of a log, or the beginning of a line that is too long, or the error that ended the log.
type piece struct {
	text []byte
	long bool
	err  error
}

// pump reads a log on a goroutine of its own, so that a slow pipe can be left. It uses the texts that come back in read again: a log
// would otherwise leave as much garbage as it is long, of which the collector lets heaps of the size of all that is kept grow.
func pump(log io.Reader, stop <-chan struct{}) (pieces <-chan piece, read chan<- []byte) {
	cut, back := make(chan piece, 2), make(chan []byte, 4)
	go func() {
		defer close(cut)
		send := func(p piece) bool {
			select {
			case cut <- p:
				return true
			case <-stop:
				return false
			}
		}
		opened, err := openLog(log)
		if err == nil {
			err = cutPieces(opened, back, send)
		}
		if err != io.EOF {
			send(piece{err: err})
		}
	}()
	return cut, back
}

// bufferOf returns a buffer of a size, one of those that came back if it is large enough.
func bufferOf(size int, back <-chan []byte) []byte {
	select {
	case old := <-back:
		if cap(old) >= size {
			return old[:size]
		}
	default:
	}
	return make([]byte, max(size, 2*readSize))[:size]
}

// cutPieces sends a log in pieces, and returns the error that ended it.
func cutPieces(log io.Reader, back <-chan []byte, send func(piece) bool) error {
	var rest []byte // the part of an incomplete line
	tooLong := false
	for {
		buffer := bufferOf(len(rest)+readSize, back)
		n, err := log.Read(buffer[copy(buffer, rest):])
		text := buffer[:len(rest)+n]
		if tooLong { // its beginning was sent
			end := bytes.IndexByte(text, '\n')
			tooLong = end < 0
			text = text[end+1:]
			if tooLong {
				text = nil
			}
		}
		whole := bytes.LastIndexByte(text, '\n') + 1
		rest = text[whole:]
		if err != nil {
			whole, rest = len(text), nil
		}
		if p := (piece{text: text[:whole]}); whole > 0 && !send(p) {
			return io.EOF
		}
		if err != nil {
			return err
		}
		if len(rest) > maxLine+1 { // with the end of a line of Windows
			tooLong = true
			if !send(piece{text: bytes.Clone(rest), long: true}) { // the lines before it have the buffer
				return io.EOF
			}
			rest = nil
		}
	}
}

// openLog detects and undoes gzip, and skips a byte order mark.
func openLog(r io.Reader) (*bufio.Reader, error) {
	log := bufio.NewReaderSize(r, readSize)
	if magic, _ := log.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := newMembers(log)
		if err != nil {
			return nil, err
		}
		log = bufio.NewReaderSize(unzipped, readSize)
	}
	if mark, _ := log.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = log.Discard(3)
	}
	return log, nil
}

// members reads the members of a gzip file, one after the other, and the zeros that fill the last block of tapes and of
// some copies.
type members struct {
	file     *bufio.Reader
	unzipped *gzip.Reader
}

func newMembers(file *bufio.Reader) (*members, error) {
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	unzipped.Multistream(false)
	return &members{file, unzipped}, nil
}

func (m *members) Read(to []byte) (int, error) {
	for {
		n, err := m.unzipped.Read(to)
		if n > 0 || err != io.EOF {
			if err == io.EOF {
				err = nil // the next call finds it again
			}
			return n, err
		}
		if err := m.next(); err != nil {
			return 0, err
		}
	}
}

// next goes on to the next member, or returns io.EOF if zeros alone follow.
func (m *members) next() error {
	for {
		first, err := m.file.ReadByte()
		if err != nil {
			return err
		}
		if first != 0 {
			break
		}
	}
	if err := m.file.UnreadByte(); err != nil {
		return err
	}
	if err := m.unzipped.Reset(m.file); err != nil {
		return err
	}
	m.unzipped.Multistream(false)
	return nil
}

// linesOf returns the lines of a piece.
func linesOf(p piece) (lines [][]byte) {
	for text := p.text; len(text) > 0; {
		var line []byte
		line, text = cutLine(text)
		lines = append(lines, line)
	}
	return lines
}

// cutLine returns the first line, without its end, and the text after it.
func cutLine(text []byte) (line, rest []byte) {
	end := bytes.IndexByte(text, '\n')
	if end < 0 {
		return bytes.TrimSuffix(text, []byte("\r")), nil
	}
	return bytes.TrimSuffix(text[:end], []byte("\r")), text[end+1:]
}
