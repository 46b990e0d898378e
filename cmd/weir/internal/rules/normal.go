package rules

import (
	"errors"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/weirflow/weir/front"
)

// Source holds the attributes of a request in a front, by their names in files, as the request has them. The name of
// a header field is in lower case: header.x-api-key.
type Source interface {
	Attribute(name string) (value string, ok bool)
}

// Attributes is a Source of fixed values.
type Attributes map[string]string

// Attribute returns the value of an attribute.
func (a Attributes) Attribute(name string) (value string, ok bool) {
	value, ok = a[name]
	return value, ok
}

// family is how the values of an attribute are compared.
type family uint8

const (
	asText family = iota
	asMethod
	asHost
	asPath
	asAddress
	asURI
	asTarget
	asPort
)

// attribute is an attribute that rules mention.
type attribute struct {
	name   string
	family family
}

// of returns the value that a front knows. Forms of the path are made of it, unless the caller sends them.
func (a attribute) of(from Source) (value string, ok bool) {
	value, ok = from.Attribute(a.name)
	if !ok && (a.family == asURI || a.family == asTarget) {
		return from.Attribute("path")
	}
	return value, ok
}

// The attributes that every file knows, and the beginnings of further ones.
var (
	knownAttributes = map[string]family{
		"method": asMethod, "host": asHost, "path": asPath, "client": asAddress, "domain": asText,
		"descriptor.remote_address": asAddress, "header.host": asHost, "uri": asURI, "request_uri": asTarget, "port": asPort,
	}
	headerPrefix, descriptorPrefix = "header.", "descriptor."
)

// AttributeName returns the name of an attribute as sources have it.
func AttributeName(name string) string {
	if lower := strings.ToLower(name); strings.HasPrefix(lower, headerPrefix) {
		return lower
	}
	return name
}

// CanRead reports whether a rule can read an attribute of a name. Callers may send others, which decide nothing.
func (c *Config) CanRead(name string) bool {
	_, known := knownAttributes[name]
	return known || strings.HasPrefix(name, headerPrefix) || strings.HasPrefix(name, descriptorPrefix) || slices.Contains(c.declared, name)
}

// value is the value of an attribute in its normal form.
type value struct {
	text    string // for patterns; a path ends in a slash, so that /v1/* fits /v1
	key     string // for keys
	address netip.Addr
	present bool
	unclear bool // servers may read different values in it
	unknown bool // a Partial lacks it; not present
}

// normal returns the normal form of a value. A value without one is not present.
func normal(f family, text string) value {
	switch f {
	case asMethod:
		text = strings.ToUpper(text)
	case asHost:
		text = cleanHost(text)
		return value{text: text, key: text, present: text != ""}
	case asPath:
		return pathValue(text)
	case asAddress:
		return addressValue(text)
	case asURI:
		return uriValue(text)
	case asTarget:
		return value{text: text, key: strings.ToValidUTF8(text, "\ufffd"), present: text != ""}
	default:
		text = strings.TrimSpace(text)
	}
	return value{text: text, key: strings.ToValidUTF8(text, "\ufffd"), present: true}
}

// addressValue reads an address, with or without a port. Its key is that of every front.
func addressValue(text string) value {
	address, ok := front.ParseAddress(text)
	if !ok {
		return value{}
	}
	v := value{text: text, key: text, address: address, present: true}
	if address.Is6() {
		v.key = front.AddressKey(address, front.IPv6Prefix)
	} else if ip := address.AppendTo(make([]byte, 0, 16)); string(ip) != text { // not an allocation for each address
		v.key = string(ip)
	}
	return v
}

// cleanHost returns a host in lower case, without its port, brackets and final dots, and an IPv6 address in its usual form.
func cleanHost(host string) string {
	host = strings.ToLower(strings.TrimSpace(host))
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	}
	if at := strings.IndexByte(host, ':'); at >= 0 {
		if address, err := netip.ParseAddr(host); err == nil { // an IPv6 address, which has several forms
			return address.String()
		}
		host = host[:at] // without a port, or more than one
	}
	return strings.TrimRight(host, ".")
}

// Host returns a host in its normal form, without a port, or says why it is none.
func Host(text string) (string, error) {
	host := cleanHost(text)
	if host == "" {
		return "", errors.New("is no host")
	}
	return host, checkHost([]string{host})
}

// pathValue returns the value of a path.
func pathValue(text string) value {
	if text == "" {
		return value{}
	}
	clean, agreed := cleanPath(text)
	clean = strings.ToValidUTF8(clean, "\ufffd")
	v := value{text: clean, key: clean, present: true, unclear: !agreed}
	if clean != "/" {
		v.text += "/"
	}
	return v
}

// cleanPath returns a path without its query, in lower case, decoded once, and without parameters, empty, "." and ".."
// segments and a final slash, and whether servers agree about its segments.
func cleanPath(text string) (clean string, agreed bool) {
	text, _, _ = strings.Cut(text, "?")
	text, _, fragment := strings.Cut(text, "#")                                           // which no request has, so servers differ about its end
	if at := strings.Index(text, "://"); at > 0 && strings.IndexByte(text, '/') == at+1 { // of a request to a proxy
		_, text, _ = strings.Cut(text[at+3:], "/")
	}
	agreed, sure := true, true
	if isUnusual(text) {
		text, agreed, sure = usualPath(text)
	}
	// Some servers read http:/a as the path /a, and many read //a/b as the path /b of the host a.
	agreed = agreed && !strings.HasPrefix(text, "//")
	if !strings.HasPrefix(text, "/") {
		agreed = agreed && !strings.Contains(text, ":")
		text = "/" + text
	}
	if strings.Contains(text, "/..") && strings.Contains(text+"/", "/../") {
		agreed = agreed && sure && !strings.Contains(text, "//")
	}
	return path.Clean(text), agreed && !fragment
}

// isUnusual reports whether usualPath may change a path.
func isUnusual(path string) bool {
	for i := range len(path) {
		if c := path[i]; c < ' ' || 'A' <= c && c <= 'Z' || c == '%' || c == ';' || c == '\\' {
			return true
		}
	}
	return false
}

// usualPath decodes the segments of a path. Java servers cut parameters off, Windows has two kinds of slash, and many
// routers ignore case, so a path could pass by a rule in other spellings. Servers disagree about what may be a step up,
// "..;" or an encoded slash beside dots, and about what another step up removes, unless they are sure to see the same
// slashes.
func usualPath(text string) (usual string, agreed, sure bool) {
	agreed, sure = true, !strings.Contains(text, `\`)
	segments := strings.Split(strings.ReplaceAll(text, `\`, "/"), "/")
	for i, raw := range segments {
		segment, _, parameters := strings.Cut(raw, ";")
		segment = strings.ReplaceAll(lowerASCII(decodeOnce(segment)), `\`, "/")
		several := strings.Contains(segment, "/")
		sure = sure && !several
		for part := range strings.SplitSeq(segment, "/") {
			agreed = agreed && !((parameters || several) && (part == "." || part == ".."))
		}
		agreed = agreed && !strings.ContainsFunc(segment, func(r rune) bool { return r < ' ' })
		segments[i] = segment
	}
	return strings.Join(segments, "/"), agreed, sure
}

// lowerASCII keeps other letters, and bytes that are no letters, as they are.
func lowerASCII(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// decodeOnce decodes percent signs. Those without two hexadecimal digits stay.
func decodeOnce(text string) string {
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			high, ok := hexDigit(text[i+1])
			low, too := hexDigit(text[i+2])
			if ok && too {
				b.WriteByte(high<<4 | low)
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func hexDigit(c byte) (digit byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// writtenValue is normal for a value that a person writes in a key, a file or a command: an address may be the network of one
// client.
func writtenValue(f family, text string) value {
	network, err := netip.ParsePrefix(text)
	if address := network.Addr(); f == asAddress && err == nil && (network.Bits() == address.BitLen() || network.Bits() >= front.IPv6Prefix && !address.Is4In6()) {
		return normal(f, address.String())
	}
	return normal(f, text)
}
