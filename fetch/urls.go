package fetch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// maxURL bounds a URL, by the bounds of browsers and servers.
const maxURL = 8 << 10

// canonical returns the URL that is fetched for a text: http or https, with a host in lower case ASCII, without the
// default port, fragment and user, and with a path.
func canonical(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxURL {
		return nil, urlLength(len(text))
	}
	u, err := url.Parse(text)
	if err != nil {
		var broken *url.Error
		if errors.As(err, &broken) {
			err = broken.Err
		}
		return nil, fmt.Errorf("not a URL: %w", err)
	}
	if u.Scheme == "" {
		return nil, errors.New("not a URL: it has no scheme; http and https are fetched")
	}
	return u, tidy(u)
}

// tidy makes an absolute URL canonical.
func tidy(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("scheme %q is not fetched, only http and https", u.Scheme)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "" {
		return errors.New("not a URL: it has no host")
	}
	if addr, err := netip.ParseAddr(host); err != nil {
		if host, err = hostName(host); err != nil {
			return err
		}
	} else if !isPlain(addr.Zone()) {
		return fmt.Errorf("the zone of the address %q has other characters than letters, digits, dots and dashes", u.Hostname())
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && port != defaultPort(u.Scheme) {
		host += ":" + port
	}
	u.Host, u.User, u.Fragment, u.RawFragment = host, nil, "", ""
	if u.Path == "" {
		u.Path, u.RawPath = "/", ""
	}
	u.RawQuery = plainQuery(u.RawQuery)
	if n := len(u.String()); n > maxURL {
		return urlLength(n)
	}
	return nil
}

// urlLength reports a URL of that many bytes.
type urlLength int

func (n urlLength) Error() string {
	return fmt.Sprintf("the URL has %d bytes, the bound is %d", int(n), maxURL)
}

// plainQuery escapes what would break a request line, or would not survive as JSON.
func plainQuery(query string) string {
	if !strings.ContainsFunc(query, needsEscape) {
		return query
	}
	var plain strings.Builder
	for _, c := range []byte(query) {
		if needsEscape(rune(c)) {
			fmt.Fprintf(&plain, "%%%02X", c)
		} else {
			plain.WriteByte(c)
		}
	}
	return plain.String()
}

// needsEscape reports whether a byte of a query, or any rune beyond ASCII, is escaped as browsers do.
func needsEscape(c rune) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>' }

// maxHost is the longest name of a host in DNS.
const maxHost = 253

// hostName returns the ASCII form of the name of a host.
func hostName(name string) (host string, err error) {
	host = name
	if strings.ContainsFunc(name, func(c rune) bool { return c >= utf8.RuneSelf }) {
		if host, err = idna.Lookup.ToASCII(name); err != nil {
			return "", fmt.Errorf("host %q: %w", name, err)
		}
		host = strings.TrimSuffix(host, ".")
	}
	if strings.Contains("."+host+".", "..") {
		return "", fmt.Errorf("host %q is not a name: nothing stands beside one of its dots", name)
	}
	if len(host) > maxHost {
		return "", fmt.Errorf("the name of the host has %d bytes, the bound is %d", len(host), maxHost)
	}
	if !isPlain(host) {
		return "", fmt.Errorf("host %q is not a name or an address", name)
	}
	return host, nil
}

// isPlain reports whether a name in small letters needs no escapes in a URL.
func isPlain(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789.-_", c) })
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// originOf returns scheme, host and port, which robots.txt is for.
func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// siteOf returns the registrable domain of a URL, which a pace is for: example.co.uk of www.example.co.uk. An address,
// and a host that is itself a public suffix, stands for itself.
func siteOf(u *url.URL) string {
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return site
	}
	return host
}

// identity is what a crawl remembers of a URL that it has seen.
type identity [16]byte

func identify(url string) identity {
	sum := sha256.Sum256([]byte(url))
	return identity(sum[:16])
}
