package rules

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// The bounds of the structure of files. Deeper and wider structures take the parser quadratic time, or all stack.
const (
	maxFlow   = 16        // brackets within brackets
	maxIndent = 100       // columns
	maxDashes = 8         // in a line
	maxFields = 10_000    // of a block
	maxLine   = 1 << 20   // bytes, because a line is read at once
	maxTokens = 1_000_000 // of all files
)

// document is a file while it is read.
type document struct {
	name     string
	lines    []string
	problems *Problems
	rest     []piece // the rules behind the first, if each is parsed when it is read
}

// node is a value in a file, with the rule and field that it belongs to.
type node struct {
	ast.Node
	doc   *document
	where string
}

// lineEnds makes the lines of all systems those that the parser counts.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// text returns the content as the parser reads it.
func (f File) text() string {
	return lineEnds.Replace(strings.TrimPrefix(string(f.Content), "\ufeff"))
}

// Lines returns the lines that problems show.
func (f File) Lines() []string { return strings.Split(f.text(), "\n") }

// open parses a file of at most *left tokens, and subtracts them from left. It returns false and notes a problem if the file is no YAML.
func open(f File, left *int, problems *Problems) (root node, ok bool) {
	d, content, ok := begun(f, *left, problems)
	if !ok {
		return node{}, false
	}
	tokens := tokenize(content, *left)
	if *left -= len(tokens); *left < 0 {
		return node{}, d.tooMany()
	}
	var s nesting
	for _, t := range tokens {
		if why := s.add(t); why != "" {
			d.failAt(t, "", why, "")
			return node{}, false
		}
	}
	return d.root(tokens)
}

// begun returns a file to parse, and its text. It returns false and notes a problem for one that cannot be parsed.
func begun(f File, left int, problems *Problems) (d *document, content string, ok bool) {
	if left < 0 { // an earlier file was too much
		return nil, "", false
	}
	d = &document{name: f.Name, problems: problems}
	if !utf8.Valid(f.Content) {
		return nil, "", d.fail("is not text in UTF-8")
	}
	content = f.text()
	d.lines = strings.Split(content, "\n")
	if at := slices.IndexFunc(d.lines, func(line string) bool { return len(line) > maxLine }); at >= 0 {
		return nil, "", d.fail(fmt.Sprintf("has %d bytes in line %d, want at most %d", len(d.lines[at]), at+1, maxLine))
	}
	return d, content, true
}

func (d *document) tooMany() bool {
	return d.fail(fmt.Sprintf("brings the words and signs of all files to more than %d", maxTokens))
}

// root parses tokens, and returns the only value.
func (d *document) root(tokens token.Tokens) (root node, ok bool) {
	parsed, err := parse(tokens)
	if err != nil {
		return node{}, d.syntax(err)
	}
	var bodies []ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		return node{}, d.fail("is empty, want rules")
	case len(bodies) > 1:
		d.failAt(bodies[1].GetToken(), "", "begins a second document, want one in a file", "")
		return node{}, false
	}
	return node{bodies[0], d, ""}, true
}

// parse turns a panic of the parser into an error: files come from people.
func parse(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("cannot be read: %v", failed)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// tokenize returns the tokens of a text, and stops beyond a number of them.
func tokenize(text string, most int) (tokens token.Tokens) {
	var s scanner.Scanner
	for s.Init(text); len(tokens) <= most; {
		some, err := s.Scan()
		if err == io.EOF { // other errors are tokens, which the parser explains
			break
		}
		tokens.Add(some...)
	}
	return tokens
}

// fail notes a problem of the whole file. It returns false.
func (d *document) fail(text string) bool {
	*d.problems = append(*d.problems, Problem{File: d.name, Text: text})
	return false
}

// syntax notes an error of the parser. It returns false.
func (d *document) syntax(err error) bool {
	failed, ok := err.(interface { // yaml.Error, without the rest of that package, which reads files
		GetToken() *token.Token
		GetMessage() string
	})
	if !ok || failed.GetToken() == nil {
		return d.fail("is not YAML: " + err.Error())
	}
	text := failed.GetMessage()
	if known, ok := plainer[text]; ok {
		text = known
	}
	t := failed.GetToken()
	if line := t.Position.Line; line <= len(d.lines) && bareStar.MatchString(d.lines[line-1]) {
		text = "a pattern that begins with * needs quotes, like \"*\""
	}
	d.failAt(t, "", "is not YAML: "+text, "")
	return false
}

// bareStar is a star without quotes where a value begins.
var bareStar = regexp.MustCompile(`[:,\[-]\s*\*`)

// plainer says what to do about errors of the parser.
var plainer = map[string]string{
	"found character '\t' that cannot start any token": "a tab cannot indent a line: use spaces",
	"mapping value is not allowed in this context":     "a colon is not allowed here; put the text in quotes, or begin a new line",
	"non-map value is specified":                       "want a field, like name: login; check the indentation",
	"value is not allowed in this context":             "a field is not allowed here; check the indentation",
}

func (d *document) failAt(t *token.Token, where, text, meant string) {
	p := Problem{File: d.name, Line: t.Position.Line, Column: t.Position.Column, Width: widthOf(t), Where: where, Text: text, Meant: meant}
	if p.Line >= 1 && p.Line <= len(d.lines) {
		p.Source = d.lines[p.Line-1]
	}
	*d.problems = append(*d.problems, p)
}

// widthOf counts the characters in the first line of a token.
func widthOf(t *token.Token) int {
	first, _, _ := strings.Cut(strings.TrimSpace(t.Origin), "\n")
	return utf8.RuneCountInString(first)
}

// fail notes a problem of the value.
func (n node) fail(format string, values ...any) { n.failMeant("", format, values...) }

func (n node) failMeant(meant, format string, values ...any) {
	n.doc.failAt(n.token(), n.where, fmt.Sprintf(format, values...), meant)
}

// token returns the first token of the value. That of a mapping in the parser's tree is its first colon.
func (n node) token() *token.Token {
	switch v := n.Node.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return v.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return v.Key.GetToken()
	}
	return n.GetToken()
}

// place returns a value that begins where n does, without its content.
func (n node) place() node {
	return node{&ast.StringNode{BaseNode: &ast.BaseNode{}, Token: n.token()}, n.doc, n.where}
}

// unlike notes that the value is not what is expected.
func (n node) unlike(want string) {
	switch v := n.Node.(type) {
	case *ast.AliasNode:
		quoted := strconv.Quote(strings.TrimSpace(v.String()))
		n.fail("is an alias of YAML, and those are not supported; a pattern that begins with * needs quotes: %s", quoted)
	case *ast.AnchorNode:
		n.fail("is an anchor of YAML, and those are not supported; a text that begins with & needs quotes")
	case *ast.TagNode:
		n.fail("is a tag of YAML, and those are not supported; a text that begins with ! needs quotes")
	case *ast.NullNode:
		n.fail("is empty, want %s", want)
	case *ast.MappingNode, *ast.MappingValueNode:
		n.fail("has fields, want %s", want)
	case *ast.SequenceNode:
		n.fail("is a list, want %s", want)
	default:
		n.fail("is %s, want %s", plain.Quoted(n.GetToken().Value), want)
	}
}

// scalar returns the text of a plain value, as the file has it.
func (n node) scalar() (string, bool) {
	switch v := n.Node.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return strings.TrimSuffix(v.Value.Value, "\n"), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// text returns a text that is not empty.
func (n node) text(want string) (string, bool) {
	text, ok := n.scalar()
	if !ok || text == "" {
		n.unlike(want)
		return "", false
	}
	return text, true
}

// oneOf returns one of the words, or "".
func (n node) oneOf(words ...string) string {
	want := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	text, ok := n.text(want)
	if !ok {
		return ""
	}
	for _, word := range words {
		if text == word {
			return word
		}
	}
	n.failMeant(nearest(text, words), "is %s, want %s", plain.Quoted(text), want)
	return ""
}

func (n node) flag() bool { return n.oneOf("true", "false") == "true" }

// whole returns a whole number within bounds.
func (n node) whole(least, most int64) int64 {
	want := fmt.Sprintf("a whole number between %d and %d", least, most)
	text, ok := n.text(want)
	if !ok {
		return least
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < least || number > most {
		n.fail("is %s, want %s", plain.Quoted(text), want)
		return least
	}
	return number
}

// list returns the values of a list, or the only value.
func (n node) list(most int) (values []node) {
	sequence, ok := n.Node.(*ast.SequenceNode)
	if !ok {
		return []node{n}
	}
	if len(sequence.Values) == 0 || len(sequence.Values) > most {
		n.fail("is a list of %d, want 1 to %d", len(sequence.Values), most)
		return nil
	}
	for _, v := range sequence.Values {
		values = append(values, node{v, n.doc, n.where})
	}
	return values
}

// member is a field with its value in a file.
type member struct {
	name string
	key  node
	node // the value
}

// pairs returns the fields of a mapping as the file has them.
func (n node) pairs(want string) (pairs []*ast.MappingValueNode, ok bool) {
	switch v := n.Node.(type) {
	case *ast.MappingNode:
		return v.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}, true
	}
	n.unlike(want)
	return nil, false
}

// members returns the fields of a mapping. It notes repeated ones.
func (n node) members(want string) (members []member, ok bool) {
	pairs, ok := n.pairs(want)
	lines := make(map[string]int, len(pairs))
	for _, pair := range pairs {
		if key, merges := pair.Key.(*ast.MergeKeyNode); merges {
			node{key, n.doc, n.where}.fail("is a merge of YAML, and those are not supported")
			continue
		}
		if m, ok := n.member(pair, want, lines); ok {
			members = append(members, m)
		}
	}
	return members, ok
}

// member returns one field of a mapping. It notes a problem, and returns false, for one that has a line already.
func (n node) member(pair *ast.MappingValueNode, want string, lines map[string]int) (m member, ok bool) {
	key := node{pair.Key, n.doc, n.where}
	name, written := key.scalar()
	if !written {
		key.fail("is not a name, want %s", want)
		return member{}, false
	}
	if line, twice := lines[name]; twice {
		key.fail("%s is given twice, first in line %d", plain.Quoted(name), line)
		return member{}, false
	}
	lines[name] = pair.Key.GetToken().Position.Line
	return member{name, key, node{pair.Value, n.doc, n.within(name)}}, true
}

func (n node) within(field string) string {
	if n.where == "" {
		return field
	}
	return n.where + ": " + field
}
