package rules

import "strings"

// uriValue reads the path of a request as nginx does for its locations: decoded once, with merged slashes and without . and
// .. segments, and otherwise as it came. nginx answers a path that has no such form with 400.
func uriValue(target string) value {
	if target == "" {
		return value{}
	}
	text, ok := uri(target)
	return value{text: text, key: strings.ToValidUTF8(text, "\ufffd"), present: true, unclear: !ok}
}

// uri returns the path of a request target, or false for a target that nginx refuses.
func uri(target string) (path string, ok bool) {
	target, _, _ = strings.Cut(target, "?")
	target, _, _ = strings.Cut(target, "#")
	if !strings.HasPrefix(target, "/") {
		return "", false
	}
	if !strings.Contains(target, "%") && !strings.Contains(target, "//") && !strings.Contains(target, "/.") {
		return target, true
	}
	decoded, ok := decodeURI(target)
	if !ok {
		return "", false
	}
	var segments []string
	for segment := range strings.SplitSeq(decoded[1:], "/") {
		switch {
		case segment == ".." && len(segments) == 0:
			return "", false
		case segment == "..":
			segments = segments[:len(segments)-1]
		case segment != "" && segment != ".":
			segments = append(segments, segment)
		}
	}
	path = "/" + strings.Join(segments, "/")
	if last := decoded[strings.LastIndexByte(decoded, '/')+1:]; path != "/" && (last == "" || last == "." || last == "..") {
		path += "/"
	}
	return path, true
}

// decodeURI decodes percent signs. It returns false for one without two hexadecimal digits, and for a zero byte.
func decodeURI(text string) (decoded string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' {
			if i+2 >= len(text) {
				return "", false
			}
			high, hex := hexDigit(text[i+1])
			low, too := hexDigit(text[i+2])
			if !hex || !too || high+low == 0 {
				return "", false
			}
			c, i = high<<4|low, i+2
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
