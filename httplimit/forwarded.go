package httplimit

import (
	"iter"
	"net/http"
	"slices"
	"strings"
)

// maxHops bounds the number of entries that are read from a header.
const maxHops = 64

const (
	forwardedFor = "X-Forwarded-For"
	forwarded    = "Forwarded"
)

// hops yields the addresses in the header of trusted proxies, the nearest first.
func hops(h http.Header, header string) iter.Seq[string] {
	values := h[header]
	switch {
	case header == forwardedFor:
		return listFromEnd(values)
	case header == forwarded:
		return forwardedFromEnd(values)
	case len(values) == 1:
		return slices.Values(values)
	}
	return func(func(string) bool) {} // a repeated single address is invalid
}

// listFromEnd yields the entries of a comma separated list, the last one first.
func listFromEnd(values []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		hops := 0
		for _, value := range slices.Backward(values) {
			for more := true; more; hops++ {
				comma := strings.LastIndexByte(value, ',')
				if hops == maxHops || !yield(value[comma+1:]) {
					return
				}
				if more = comma >= 0; more {
					value = value[:comma]
				}
			}
		}
	}
}

// forwardedFromEnd yields the for parameters of a Forwarded header (RFC 7239), the last one first. It yields nothing
// for a malformed header.
func forwardedFromEnd(values []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		hops := 0
		for _, value := range slices.Backward(values) {
			elements, ok := forwardedElements(value)
			if !ok {
				return
			}
			for _, element := range slices.Backward(elements) {
				if hops++; hops > maxHops || !yield(element) {
					return
				}
			}
		}
	}
}

// forwardedElements returns the for parameters of each element of a value. An element without one is empty, which is
// not an address.
func forwardedElements(value string) (elements []string, ok bool) {
	element := ""
	for len(value) > 0 {
		name, rest, _ := strings.Cut(value, "=")
		if !isToken(name) {
			return nil, false
		}
		var text string
		if text, rest, ok = tokenOrQuoted(rest); !ok {
			return nil, false
		}
		if strings.EqualFold(name, "for") {
			if element != "" {
				return nil, false
			}
			element = text
		}
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" || rest[0] == ',' {
			elements, element = append(elements, element), ""
		} else if rest[0] != ';' {
			return nil, false
		}
		if value = rest; value != "" {
			if value = strings.TrimLeft(value[1:], " \t"); value == "" {
				return nil, false
			}
		}
	}
	return elements, true
}

// tokenOrQuoted reads a token or a quoted string, and returns the text after it.
func tokenOrQuoted(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := 0
		for end < len(text) && isTokenByte(text[end]) {
			end++
		}
		return text[:end], text[end:], end > 0
	}
	var unquoted strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return unquoted.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		unquoted.WriteByte(text[i])
	}
	return "", "", false
}

// isToken reports whether a text is a token of HTTP. Other text would let a client's entry reach into the entry that
// a proxy appends.
func isToken(text string) bool {
	for i := range len(text) {
		if !isTokenByte(text[i]) {
			return false
		}
	}
	return text != ""
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
