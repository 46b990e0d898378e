package rules

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A large file is not parsed as a whole, because its tokens and the parser's trees take a hundred times the memory of
// its text. Its rules are parsed one after the other, and the parsed nodes of one are dropped before the next.

// largeFile is the least size, in bytes, of a file that is parsed in pieces.
const largeFile = 256 << 10

// piece is the lines of a rule in a list with a line for each dash.
type piece struct{ from, to int } // counted from 0; to is behind the last

// openInPieces works like open, and leaves all rules but the first to document.parse. A file in another form it opens as a whole.
func openInPieces(f File, left *int, problems *Problems) (root node, ok bool) {
	d, _, ok := begun(f, *left, problems)
	if !ok {
		return node{}, false
	}
	list := pieces(d.lines)
	if len(list) < 2 {
		return open(f, left, problems)
	}
	head := append([]string(nil), d.lines...)
	for _, p := range list[1:] {
		clear(head[p.from:p.to])
	}
	first := tokenize(strings.Join(head, "\n"), *left)
	after, whole := *left-len(first), !sound(first)
	for _, p := range list[1:] {
		tokens := d.tokens(p, max(after, 0))
		after, whole = after-len(tokens), whole || !sound(tokens)
	}
	if after >= 0 && whole {
		return open(f, left, problems)
	}
	if *left = after; after < 0 {
		return node{}, d.tooMany()
	}
	d.rest = list[1:]
	return d.root(first)
}

// parse returns the rule of a piece.
func (d *document) parse(p piece) (rule node, ok bool) {
	tokens := d.tokens(p, maxTokens)
	root, ok := d.root(tokens)
	if !ok {
		return node{}, false
	}
	for _, t := range tokens { // so that what refers to one does not keep all
		t.Prev, t.Next = nil, nil
	}
	list, ok := root.Node.(*ast.SequenceNode)
	if !ok || len(list.Values) != 1 {
		root.fail("is not a rule, want a list of rules, each beginning with '- name: '")
		return node{}, false
	}
	return node{list.Values[0], d, ""}, true
}

// tokens returns the tokens of a piece, up to a number of them, with their places in the file.
func (d *document) tokens(p piece, most int) token.Tokens {
	text := strings.Join(d.lines[p.from:p.to], "\n")
	if p.to < len(d.lines) {
		text += "\n"
	}
	tokens := tokenize(text, most)
	for _, t := range tokens {
		t.Position.Line += p.from
	}
	return tokens
}

// sound reports whether tokens are all of a text, which is not too deep or wide.
func sound(tokens token.Tokens) bool {
	var s nesting
	for _, t := range tokens {
		if t.Type == token.InvalidType || s.add(t) != "" {
			return false
		}
	}
	return s.flow == 0
}

// rulesField is the line of a list of rules.
var rulesField = regexp.MustCompile(`^rules:[ \t]*(#.*)?$`)

// pieces returns the rules of a file.
func pieces(lines []string) (list []piece) {
	at := 0
	for at < len(lines) && !rulesField.MatchString(lines[at]) {
		at++
	}
	indent := -1
	for at++; at < len(lines); at++ {
		text := strings.TrimLeft(lines[at], " ")
		if text == "" || text[0] == '#' {
			continue
		}
		in, dash := len(lines[at])-len(text), text == "-" || strings.HasPrefix(text, "- ")
		switch {
		case dash && (indent < 0 || in == indent):
			indent = in
			if n := len(list); n > 0 {
				list[n-1].to = at
			}
			list = append(list, piece{at, len(lines)})
		case in <= max(indent, 0): // behind the list
			if n := len(list); n > 0 {
				list[n-1].to = at
			}
			return list
		case indent < 0:
			return nil
		}
	}
	return list
}
