package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/url"
	"path"
	"strings"
)

// maxName bounds the readable part of a file name, and maxFolder a whole name, by the bounds of file systems.
const (
	maxName   = 80
	maxFolder = 255
)

// FileName returns a relative path, with a slash, for the body of a URL: the host, and a name that has the readable
// part of the URL and a hash of all of it. Two URLs have two names, also where files differ in more than case. The
// path holds nothing but a-z, 0-9, '.', '-' and '_', and no part of it begins with a dot or has a meaning to a system.
func FileName(u *url.URL, contentType string) string {
	stem, ending := split(u, contentType)
	return folder(u) + "/" + stem + "-" + hash(u.String()) + ending
}

// hash returns 16 digits.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// folder returns the folder of a host. A name that is too long ends with its hash.
func folder(u *url.URL) string {
	host := safe(strings.ToLower(u.Hostname()))
	if port := u.Port(); port != "" {
		host += "_" + safe(port)
	}
	host = strings.Trim(host, ".")
	if host == "" || host[0] == '-' || isDevice(host) {
		host = "host_" + host // a program would read "-x" as an option
	}
	if len(host) > maxFolder {
		sum := hash(host)
		host = host[:maxFolder-1-len(sum)] + "-" + sum
	}
	return host
}

// split returns the readable part of a URL, and an ending with its dot or none.
func split(u *url.URL, contentType string) (stem, ending string) {
	stem = strings.Trim(u.Path, "/")
	if ending = path.Ext(stem); isEnding(ending) {
		stem = strings.TrimSuffix(stem, ending)
	} else {
		ending = endings[kindOf(contentType)]
	}
	if u.RawQuery != "" {
		stem += "_" + u.RawQuery
	}
	if stem = safe(strings.ToLower(stem)); len(stem) > maxName {
		stem = stem[:maxName]
	}
	if stem = strings.Trim(stem, "._-"); stem == "" {
		stem = "index"
	}
	return stem, strings.ToLower(ending)
}

// isEnding reports whether the text is a dot and up to 8 letters or digits.
func isEnding(text string) bool {
	if len(text) < 2 || len(text) > 9 {
		return false
	}
	return strings.Trim(strings.ToLower(text[1:]), "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

var endings = map[string]string{
	"text/html": ".html", "application/xhtml+xml": ".html", "text/plain": ".txt", "application/json": ".json",
	"application/xml": ".xml", "text/xml": ".xml", "application/pdf": ".pdf", "text/css": ".css",
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/svg+xml": ".svg", "image/webp": ".webp",
}

func kindOf(contentType string) string {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind
}

// safe replaces every character that is not in all names of all systems.
func safe(text string) string {
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, text)
}

// isDevice reports whether Windows takes a name for a device.
func isDevice(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt"))
}
