package fetch

import (
	"mime"
	"strings"
)

// isHTML reports whether a Content-Type is a page with links. An empty one may be.
func isHTML(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == "" || kind == "text/html" || kind == "application/xhtml+xml"
}

// trimSpace removes the white space that HTML allows around a URL.
func trimSpace(text string) string { return strings.Trim(text, " \t\r\n\f") }
