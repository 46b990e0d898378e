package resp

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/weirflow/weir"
)

// The bounds of a command. The largest is a take of 128 rules and keys.
const (
	maxArgs    = 4 + 3*weir.MaxRequests
	maxInline  = 64 << 10
	maxCommand = 1 << 20 // and of each of its words: a key that is too long is an error of its command
)

// protocolError ends a connection: later commands have no known beginning.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// decode reads the first command of b. It appends the words to args, which point into b. n is the number of bytes that the
// command takes, or 0 if it has not fully arrived; then b needs at least need bytes.
func decode(b []byte, args [][]byte) (_ [][]byte, n, need int, err error) {
	if len(b) == 0 {
		return args, 0, 1, nil
	}
	if b[0] != '*' {
		return decodeInline(b, args)
	}
	count, at, need, err := line(b, 0, maxArgs, "multibulk length")
	if need > 0 || err != nil {
		return args, 0, need, err
	}
	for range count {
		if at == len(b) {
			return args, 0, at + 1, nil
		}
		if b[at] != '$' {
			return args, 0, 0, protocolError(fmt.Sprintf("expected '$', got %q", b[at]))
		}
		length, start, need, err := line(b, at, maxCommand, "bulk length")
		if need > 0 || err != nil {
			return args, 0, need, err
		}
		end := start + length
		switch {
		case end+2 > maxCommand:
			return args, 0, 0, protocolError(fmt.Sprintf("a command has more than %d bytes", maxCommand))
		case end+2 > len(b):
			return args, 0, end + 2, nil
		case b[end] != '\r' || b[end+1] != '\n':
			return args, 0, 0, protocolError("a bulk string does not end with CR LF")
		}
		args = append(args, b[start:end:end])
		at = end + 2
	}
	return args, at, 0, nil
}

// line reads a line like *3 or $5 at a position. It returns the number and the position behind the line.
func line(b []byte, at, most int, what string) (n, behind, need int, err error) {
	const longest = 8 // digits
	i := at + 1
	for ; i < len(b) && i <= at+longest && '0' <= b[i] && b[i] <= '9'; i++ {
		n = 10*n + int(b[i]-'0')
	}
	switch {
	case i == len(b), i+1 == len(b) && b[i] == '\r':
		return 0, 0, len(b) + 1, nil
	case i == at+1 || b[i] != '\r' || b[i+1] != '\n' || n > most:
		return 0, 0, 0, protocolError(fmt.Sprintf("invalid %s: not 0 to %d", what, most))
	}
	return n, i + 2, 0, nil
}

// decodeInline reads a line of words, as a person types it. Words stand in no quotes.
func decodeInline(b []byte, args [][]byte) (_ [][]byte, n, need int, err error) {
	end := bytes.IndexByte(b, '\n')
	switch {
	case end < 0 && len(b) >= maxInline:
		return args, 0, 0, protocolError("too big inline request")
	case end < 0:
		return args, 0, len(b) + 1, nil
	}
	args = append(args, bytes.Fields(b[:end])...)
	if len(args) > 0 && isHTTP(args[0]) {
		return args, 0, 0, errHTTP
	}
	if len(args) > maxArgs {
		return args, 0, 0, protocolError(fmt.Sprintf("more than %d words", maxArgs))
	}
	return args, end + 1, 0, nil
}

// errHTTP closes a connection without an answer. A page in a browser can make it send an HTTP request here, and the lines of
// its body must not become commands.
const errHTTP = protocolError("an HTTP request")

func isHTTP(word []byte) bool {
	switch string(bytes.ToUpper(word)) {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PRI", "HOST:":
		return true
	}
	return false
}

// integer reads decimal digits with a sign, like Redis: no spaces, no plus, and no zeros ahead.
func integer(digits []byte) (n int64, ok bool) {
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (len(digits) > 1 || negative) {
		return 0, false
	}
	var u uint64 // 19 digits fit
	for _, digit := range digits {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		u = 10*u + uint64(digit-'0')
	}
	if negative {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

func errArity(name string) error {
	return fmt.Errorf("ERR wrong number of arguments for '%s' command", strings.ToLower(name))
}

// is reports whether a word is a name, in whatever case.
func is(word []byte, name string) bool { return bytes.EqualFold(word, []byte(name)) }
