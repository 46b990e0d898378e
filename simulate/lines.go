package simulate

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// maxLine bounds a line, and with it the buffer of a log.
const maxLine = 1 << 20

// eachLine calls f with every line of r, without its line end. The last line needs no line end. For a line longer
// than maxLine it passes the beginning and sets long. The bytes are valid until f returns. An error of f stops the
// reading.
func eachLine(r io.Reader, f func(line []byte, long bool) error) error {
	lines, err := openLog(r)
	if err != nil {
		return err
	}
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if failed := f(line, true); failed != nil {
				return failed
			}
			err = skipLine(lines)
		case err == nil || len(line) > 0:
			if failed := f(trimEnd(line), false); failed != nil {
				return failed
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// openLog detects and undoes gzip, and skips a byte order mark.
func openLog(r io.Reader) (*bufio.Reader, error) {
	lines := bufio.NewReaderSize(r, maxLine+2)
	if magic, _ := lines.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(lines)
		if err != nil {
			return nil, err
		}
		lines = bufio.NewReaderSize(unzipped, maxLine+2)
	}
	if mark, _ := lines.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = lines.Discard(3)
	}
	return lines, nil
}

func skipLine(lines *bufio.Reader) error {
	for {
		_, err := lines.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// The reasons to reject a line. There are few of them, so that the report can count each. Each completes "the line
// …".
const (
	whyBlank     = "is blank"
	whyNotClient = "has a client that is not an address"
	whyClients   = "names several addresses, and any may be that of the client"
	whyLong      = "is longer than 1 MiB"
	whyNoTime    = "has no time"
	whyBadTime   = "has a time that cannot be read"
	whyRange     = "has a time outside the years 1678 to 2261"
	whyNotJSON   = "is not valid JSON"
	whyLongKey   = "has a key longer than 4096 bytes"
	whyNoField   = "has no %s, or one cut short"
	whyNoClient  = "does not begin with the address of a client"
	whyNoCost    = "has no cost that is a whole number up to 1,000,000,000"
)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
