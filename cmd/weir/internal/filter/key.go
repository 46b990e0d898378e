package filter

import (
	"bytes"
	"fmt"
	"strconv"
)

// ParseKey returns a function that finds the key of a line. The field is host, or the number of a column from 1. The
// delimiter separates columns; without one, runs of spaces and tabs do. Lines without the field have the empty key.
func ParseKey(field, delimiter string) (func(line []byte) []byte, error) {
	if field == "host" {
		if delimiter != "" {
			return nil, fmt.Errorf("pace: delimiter %q: the key host takes no delimiter", delimiter)
		}
		return host, nil
	}
	column, err := strconv.Atoi(field)
	if err != nil || column < 1 {
		return nil, fmt.Errorf("pace: key %q: want host or the number of a column from 1", field)
	}
	if delimiter == "" {
		return func(line []byte) []byte { return word(line, column) }, nil
	}
	between := []byte(delimiter)
	return func(line []byte) []byte { return part(line, between, column) }, nil
}

// word returns the n-th word of a line, split at ASCII white space.
func word(line []byte, n int) []byte {
	for rest := line; ; n-- {
		rest = bytes.TrimLeft(rest, whiteSpace)
		end := bytes.IndexAny(rest, whiteSpace)
		if end < 0 {
			end = len(rest)
		}
		if n == 1 || end == 0 {
			return rest[:end]
		}
		rest = rest[end:]
	}
}

const whiteSpace = " \t\r\n\v\f"

// part returns the n-th part of a line between delimiters.
func part(line, delimiter []byte, n int) []byte {
	rest := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	for ; n > 1; n-- {
		_, behind, found := bytes.Cut(rest, delimiter)
		if !found {
			return nil
		}
		rest = behind
	}
	first, _, _ := bytes.Cut(rest, delimiter)
	return first
}

// host returns the host of the first URL in a line, in lower case, without user and port. It accepts any text before
// the scheme and after the host.
func host(line []byte) []byte {
	_, rest, found := bytes.Cut(line, []byte("://"))
	if !found {
		return nil
	}
	if end := bytes.IndexAny(rest, "/?#\\\"'<>"+whiteSpace); end >= 0 {
		rest = rest[:end]
	}
	if user := bytes.LastIndexByte(rest, '@'); user >= 0 {
		rest = rest[user+1:]
	}
	return bytes.ToLower(withoutPort(rest))
}

// withoutPort removes the port and keeps the brackets of an IPv6 address.
func withoutPort(authority []byte) []byte {
	if bytes.HasPrefix(authority, []byte("[")) {
		if end := bytes.IndexByte(authority, ']'); end >= 0 {
			return authority[:end+1]
		}
	}
	name, _, _ := bytes.Cut(authority, []byte(":"))
	return name
}
