package httplimit

import (
	"strconv"
	"strings"
)

// prefersText reports whether an Accept header asks for text rather than for a problem document. A client without a
// preference gets the document.
func prefersText(accept []string) bool {
	text, document := weights{}, weights{}
	for _, value := range accept {
		for entry := range strings.SplitSeq(value, ",") {
			media, q := quality(entry)
			switch media {
			case "text/plain", "text/html":
				text.add(2, q)
			case "text/*":
				text.add(1, q)
			case "application/problem+json", "application/json":
				document.add(2, q)
			case "application/*":
				document.add(1, q)
			case "*/*":
				text.add(0, q)
				document.add(0, q)
			}
		}
	}
	return text.best() > document.best()
}

// weights holds the quality of a media type under each name that matches it: any type, any subtype, the type itself.
// Qualities are in thousandths, plus one.
type weights [3]int

func (w *weights) add(precision, q int) { w[precision] = max(w[precision], q+1) }

// best returns the quality of the most precise name.
func (w *weights) best() int {
	for precision := 2; precision >= 0; precision-- {
		if w[precision] > 0 {
			return w[precision] - 1
		}
	}
	return 0
}

// quality splits an entry of an Accept header into its media type and its q in
// thousandths. A malformed q is 0.
func quality(entry string) (media string, q int) {
	media, parameters, _ := strings.Cut(entry, ";")
	q = 1000
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return strings.ToLower(strings.TrimSpace(media)), 0
		}
		q = int(f * 1000)
	}
	return strings.ToLower(strings.TrimSpace(media)), q
}
