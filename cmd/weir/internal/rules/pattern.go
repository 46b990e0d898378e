package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// kind is the kind of a pattern.
type kind uint8

const (
	exact      kind = iota
	prefix          // text with a final star
	glob            // text with other stars
	network         // addresses
	present         // a star alone
	expression      // a regular expression
)

// pattern is a value, or many values, of an attribute.
type pattern struct {
	kind    kind
	head    string   // the text before the first star; all of it if there is none
	middle  []string // the texts between the stars of a glob
	tail    string   // the text behind the last star of a glob
	network netip.Prefix
	regexp  *regexp.Regexp
	words   []string // of an expression that demands one of them; nil of others
	source  string   // as the file has it
}

// parsePattern reads a pattern in the normal form of values, so that it fits what it says: POST fits post.
func parsePattern(f family, source string) (pattern, error) {
	p := pattern{source: source}
	parts, stars := splitStars(source)
	switch {
	case stars == 1 && source == "*":
		p.kind = present
		return p, nil
	case f == asAddress:
		return p, p.readNetwork()
	case strings.HasPrefix(source, "~"):
		return p, p.readExpression(f)
	case f == asText && isNetwork(source):
		return p, errors.New("is a network, and this attribute is text; networks are patterns of client")
	}
	if err := normalParts(f, parts); err != nil {
		return p, err
	}
	p.head = parts[0]
	switch {
	case stars == 0:
		p.kind = exact
	case stars == 1 && parts[1] == "":
		p.kind = prefix
	default:
		p.kind, p.middle, p.tail = glob, parts[1:stars], parts[stars]
	}
	return p, nil
}

func isNetwork(text string) bool {
	_, err := netip.ParsePrefix(text)
	return err == nil
}

func (p *pattern) readNetwork() error {
	p.kind = network
	if address, err := netip.ParseAddr(p.source); err == nil && address.Zone() == "" {
		address = address.Unmap()
		p.network = netip.PrefixFrom(address, address.BitLen())
		return nil
	}
	read, err := netip.ParsePrefix(p.source)
	if err != nil {
		return fmt.Errorf("is %s, want an address or a network like 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32", plain.Quoted(p.source))
	}
	if read.Addr().Is4In6() {
		return fmt.Errorf("is %s, want the network in the form of IPv4", plain.Quoted(p.source))
	}
	p.network = read.Masked()
	if p.network.Addr() != read.Addr() {
		return fmt.Errorf("is %s, and the network of this length begins at %s", plain.Quoted(p.source), p.network)
	}
	return nil
}

// splitStars returns the texts around the stars that are not escaped.
func splitStars(source string) (parts []string, stars int) {
	var part strings.Builder
	for i := 0; i < len(source); i++ {
		switch {
		case source[i] == '\\' && i+1 < len(source) && (source[i+1] == '*' || source[i+1] == '\\' || i == 0 && source[i+1] == '~'):
			i++
			part.WriteByte(source[i])
		case source[i] == '*':
			stars++
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(source[i])
		}
	}
	return append(parts, part.String()), stars
}

// normalParts brings the texts of a pattern into the normal form of values.
func normalParts(f family, parts []string) error {
	last := len(parts) - 1
	for i, part := range parts {
		switch f {
		case asMethod:
			parts[i] = strings.ToUpper(part)
		case asHost:
			parts[i] = strings.ToLower(part)
		case asPath:
			parts[i] = lowerASCII(part)
		}
	}
	switch f {
	case asMethod:
		return checkMethod(parts)
	case asPort:
		return checkPort(parts)
	case asHost:
		return checkHost(parts)
	case asPath:
		if !strings.HasPrefix(parts[0], "/") && (last == 0 || parts[0] != "") {
			return errors.New("is no path, want one that begins with / or *")
		}
		if strings.ContainsAny(strings.Join(parts, ""), "?#") {
			return errors.New("has a query; rules match the path alone")
		}
		if strings.ContainsAny(strings.Join(parts, ""), `;\`) {
			return errors.New("has a parameter or a backslash, which no normal path has")
		}
		return normalPath(parts)
	case asText:
		if trimmed := strings.TrimSpace(strings.Join(parts, "*")); trimmed != strings.Join(parts, "*") {
			return errors.New("begins or ends with a space, which no value does")
		}
	}
	return nil
}

func checkMethod(parts []string) error {
	for _, r := range strings.Join(parts, "") {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return fmt.Errorf("has %q, which no method has; list several methods, like [GET, POST]", r)
		}
	}
	return nil
}

func checkPort(parts []string) error {
	for _, part := range parts {
		if strings.ContainsFunc(part, func(r rune) bool { return r < '0' || r > '9' }) {
			return errors.New("is no port, want a number like 443")
		}
	}
	if number, err := strconv.ParseUint(parts[0], 10, 16); parts[0] != "" && (err != nil || number == 0 || parts[0][0] == '0') {
		return errors.New("is no port, want a number from 1 to 65535 without leading zeros")
	}
	return nil
}

func checkHost(parts []string) error {
	text := strings.Join(parts, "")
	for _, r := range text {
		if r > '~' {
			return errors.New("is not in ASCII; write the host as the wire has it, like xn--bcher-kva.example")
		}
		if r <= ' ' {
			return errors.New("has a space or a control character, which no host has")
		}
	}
	last := len(parts) - 1
	switch {
	case strings.ContainsAny(text, `/\?#@`) || strings.Count(text, ":") == 1:
		return errors.New("is no host; leave out the scheme, the port and the path")
	case last == 0 && cleanHost(parts[0]) != parts[0]:
		return fmt.Errorf("is no host in its normal form, want %s", plain.Quoted(cleanHost(parts[0])))
	case strings.HasPrefix(parts[0], "."):
		return fmt.Errorf("begins with a dot, which no host does; list %s and %s", plain.Quoted(parts[0][1:]), plain.Quoted("*"+parts[0]))
	case last > 0 && strings.ContainsAny(text, "[]:"):
		return errors.New("is part of an IPv6 address; list whole addresses, like 2001:db8::1")
	case last > 0 && strings.HasSuffix(parts[last], "."):
		return errors.New("ends in a dot, which no host in its normal form does")
	}
	return nil
}

// normalPath lets a path end in a slash, as values do. A pattern in no normal form would fit nothing, which is an error.
func normalPath(parts []string) error {
	last := len(parts) - 1
	text := strings.Join(parts, "*")
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return errors.New("has a control character, and a request with one is refused")
	}
	if last == 0 {
		if clean, _ := cleanPath(text); clean != text && clean != strings.TrimSuffix(text, "/") {
			return fmt.Errorf("is no path in its normal form, want %s", wantPath(clean))
		}
	} else if whole := text + "/"; strings.Contains(text, "//") || strings.Contains(whole, "/./") || strings.Contains(whole, "/../") {
		return errors.New("has a segment that is empty, . or .., which no normal path has")
	} else if decoded := lowerASCII(decodeOnce(text)); decoded != text {
		return fmt.Errorf("has an encoded character, and paths are decoded before; write %s", wantPath(decoded))
	}
	if !strings.HasSuffix(parts[last], "/") && (last == 0 || parts[last] != "") {
		parts[last] += "/"
	}
	return nil
}

// wantPath names the pattern to write in place of one that is not in normal form. text is its normal form.
func wantPath(text string) string {
	decoded := text
	for decodeOnce(decoded) != decoded {
		decoded = lowerASCII(decodeOnce(decoded))
	}
	if decoded == text {
		return plain.Quoted(text)
	}
	return fmt.Sprintf("%s, or for paths that are encoded twice uri: %s", plain.Quoted(decoded), plain.Quoted(text))
}

// trap says why a pattern hardly fits what it was written for, if that is so.
func (p *pattern) trap(f family) string {
	text := p.source
	switch {
	case f != asURI || p.kind == expression:
		return ""
	case strings.ContainsAny(text, "?#"):
		return "has a query, and uri has none: only paths with an encoded ? or # fit; request_uri has the query"
	case decodeOnce(text) != text:
		return "has an encoded character, and uri is decoded: only paths that are encoded twice fit; write " + plain.Quoted(decodeOnce(text))
	}
	return ""
}
