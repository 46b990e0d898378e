package api

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/weirflow/weir/cmd/weir/internal/desk"
)

// The header fields that may hold the key of all requests, and the token: a proxy can route by a header field, and not
// by a body.
const (
	headerKey   = "Weir-Key"
	headerToken = "Weir-Token"
)

// headerText returns the text of a header field, and "" without one. It refuses an empty field, because clients that
// fill it from an unset variable would share one key.
func headerText(h http.Header, name string, most int) (string, *problem) {
	values := h[name]
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", badField(name, fmt.Sprintf("occurs %d times", len(values)))
	case values[0] == "":
		return "", badField(name, "is empty; only the body can hold the empty text")
	case len(values[0]) > most:
		return "", badField(name, fmt.Sprintf("has %d bytes, more than %d", len(values[0]), most))
	case !utf8.ValidString(values[0]):
		return "", badField(name, "is not UTF-8")
	}
	return values[0], nil
}

// agree refuses a text of the body that differs from that of its header field.
func (r *reader) agree(at spot, text, name, header string) {
	if header != "" && text != header {
		r.fail(badField(at.String(), "is "+desk.Quote(text)+", and the header field "+name+" is "+desk.Quote(header)))
	}
}
