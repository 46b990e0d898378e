package httplimit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

// Host returns the host that a client's request goes to, as one key however it is written: in lower case, without the
// default port of its scheme and without a final dot, and an international name in its ASCII form.
func Host(r *http.Request) string {
	host := r.Host
	if r.URL != nil && r.URL.Host != "" {
		host = r.URL.Host
		switch r.URL.Scheme {
		case "http":
			host = strings.TrimSuffix(host, ":80")
		case "https":
			host = strings.TrimSuffix(host, ":443")
		}
	}
	if isPlainHost(host) {
		return host
	}
	name, port := host, ""
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		name, port = host[:colon], host[colon:]
	}
	return asciiHost(strings.ToLower(strings.TrimSuffix(name, "."))) + strings.TrimSuffix(port, ":")
}

// isPlainHost reports whether a host is a key as it is.
func isPlainHost(host string) bool {
	for i := range len(host) {
		if c := host[i]; c >= 0x80 || c >= 'A' && c <= 'Z' || c == ':' {
			return false
		}
	}
	return !strings.HasSuffix(host, ".")
}

// Credential returns a hash of the Authorization field of a client's request, for servers that limit each credential
// apart: Combine(Host, Credential). Requests without the field have one key.
func Credential(r *http.Request) string {
	secret := r.Header.Get("Authorization")
	if secret == "" {
		return "anonymous"
	}
	hash := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(hash[:8])
}

// asciiHost returns a host as net/http sends it, which is in ASCII.
func asciiHost(host string) string {
	var sent bytes.Buffer
	r := http.Request{URL: &url.URL{Host: host}}
	if isASCII(host) || r.Write(&sent) != nil {
		return host
	}
	_, fields, _ := strings.Cut(sent.String(), "\r\nHost: ")
	ascii, _, _ := strings.Cut(fields, "\r\n")
	return ascii
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c >= 0x80 })
}
