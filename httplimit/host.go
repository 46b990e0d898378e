package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
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
	labels := strings.Split(strings.ToLower(strings.TrimSuffix(name, ".")), ".")
	for i := range labels {
		labels[i] = asciiLabel(labels[i])
	}
	return strings.Join(labels, ".") + strings.TrimSuffix(port, ":")
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

// asciiLabel returns a label of an international name in Punycode (RFC 3492).
func asciiLabel(label string) string {
	basic := make([]byte, 0, len(label))
	others := 0
	for _, c := range label {
		if c < 0x80 {
			basic = append(basic, byte(c))
		} else {
			others++
		}
	}
	if others == 0 || len(label) > maxKey {
		return label
	}
	return "xn--" + punycode(label, basic, others)
}

// The parameters of Punycode.
const (
	base, tMin, tMax, skew, damp = 36, 1, 26, 38, 700
	firstBias, firstOther        = 72, 0x80
)

func punycode(label string, basic []byte, others int) string {
	out := basic
	handled := len(basic)
	if handled > 0 {
		out = append(out, '-')
	}
	n, delta, bias, first := rune(firstOther), 0, firstBias, true
	for ; others > 0; n++ {
		next := rune(0x10FFFF)
		for _, c := range label {
			if c >= n && c < next {
				next = c
			}
		}
		delta += int(next-n) * (handled + 1)
		n = next
		for _, c := range label {
			if c < n {
				delta++
			}
			if c != n {
				continue
			}
			out = appendVariable(out, delta, bias)
			bias = adapt(delta, handled+1, first)
			delta, first = 0, false
			handled++
			others--
		}
		delta++
	}
	return string(out)
}

// appendVariable appends a number in digits of a variable base.
func appendVariable(out []byte, n, bias int) []byte {
	for k := base; ; k += base {
		t := min(max(k-bias, tMin), tMax)
		if n < t {
			return append(out, digit(n))
		}
		out = append(out, digit(t+(n-t)%(base-t)))
		n = (n - t) / (base - t)
	}
}

func digit(n int) byte {
	if n < 26 {
		return byte('a' + n)
	}
	return byte('0' + n - 26)
}

func adapt(delta, points int, first bool) int {
	if delta /= 2; first {
		delta /= damp / 2
	}
	delta += delta / points
	k := 0
	for ; delta > (base-tMin)*tMax/2; k += base {
		delta /= base - tMin
	}
	return k + (base-tMin+1)*delta/(delta+skew)
}
