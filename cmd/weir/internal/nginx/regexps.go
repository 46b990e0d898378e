package nginx

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// foreign finds what PCRE and RE2 read differently, or RE2 does not have: escapes except those of marks, digits, words and
// their boundaries, and flags.
var foreign = regexp.MustCompile(`\\[^\W_dDwWbB]|\(\?(?:[^:<P]|<[=!]|P[^<])|\(\*`)

// expression reads a regular expression of nginx.
func expression(text string, caseless bool) (pattern, error) {
	p := pattern{form: matching, text: text, source: "~" + text}
	if at := foreign.FindString(text); at != "" {
		return p, fmt.Errorf("the regular expression %s has %s, which rules do not read as nginx does", text, at)
	}
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return p, fmt.Errorf("the regular expression %s is not in ASCII", text)
		}
	}
	if strings.HasPrefix(text, "*") { // which rules read as ~*
		return p, fmt.Errorf("the regular expression %s begins with a star", text)
	}
	if caseless {
		p.source, text = "~*"+text, "(?i)"+text
	}
	read, err := syntax.Parse(text, syntax.Perl)
	if err == nil {
		p.program, err = syntax.Compile(read.Simplify())
	}
	if err == nil {
		p.regexp, err = regexp.Compile(text)
	}
	if err != nil || len(text) > 512 {
		return p, fmt.Errorf("the regular expression %s cannot be used in rules: it is longer than 512 bytes, or not of RE2", p.text)
	}
	return p, nil
}
