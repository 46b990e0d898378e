package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/weirflow/weir"
)

// New returns the Config of rules that another format's parser has read, with data of that parser. The
// rules differ in name, and no attributes find them.
func New(list []*Rule, foreign any) *Config {
	c := &Config{Rules: list, Foreign: foreign, names: make(map[string]*Rule, len(list))}
	for i, r := range list {
		r.order, r.cost, r.costFrom, r.planBy, r.missing, r.foreign = i, 1, -1, -1, MissingShare, true
		c.names[r.Name] = r
	}
	c.index = newIndex(list, 0)
	return c
}

// isEnvoyproxy notes a problem, and returns true, for a file of envoyproxy/ratelimit.
func (n node) isEnvoyproxy() bool {
	mapping, ok := n.Node.(*ast.MappingNode)
	if !ok || len(mapping.Values) == 0 {
		return false
	}
	for _, pair := range mapping.Values {
		if name, _ := (node{Node: pair.Key}).scalar(); name != "domain" && name != "descriptors" {
			return false
		}
	}
	n.fail("is a file of envoyproxy/ratelimit, and not of rules: weir serve --compat envoyproxy reads it unchanged, and weir rules import envoyproxy makes rules of it")
	return true
}

// Value is a value in a file of another format. Anchors and aliases of YAML stand for their values.
type Value struct {
	n       node
	anchors map[string][]*ast.AnchorNode // in the order of the file
	depth   int
	left    *Size
}

// Entry is a field with its value.
type Entry struct {
	Name string
	Key  Value
	Value
}

// maxForeign bounds values within values, so that an alias within its own anchor has an end.
const maxForeign = 64

// maxValues bounds the values of all files, because aliases may repeat them without end.
const maxValues = 500_000

// Size bounds the rest of the files of a configuration.
type Size struct {
	tokens int
	values int // with those that aliases repeat
}

// NewSize returns the size of all files.
func NewSize() *Size { return &Size{maxTokens, maxValues} }

// ReadForeign parses a file of another format. It returns false, and has noted a problem, if the file is no YAML.
func ReadForeign(f File, left *Size, problems *Problems) (Value, bool) {
	root, ok := open(f, &left.tokens, problems)
	if !ok {
		return Value{}, false
	}
	v := Value{n: root, anchors: map[string][]*ast.AnchorNode{}, left: left}
	ast.Walk(v, root.Node)
	return v.of(root.Node), true
}

// Whole returns a value that stands for all of a resource that is no text. Problems of it name the resource, and no line.
func Whole(name string, problems *Problems) Value {
	nowhere := &token.Token{Position: &token.Position{}}
	return Value{n: node{&ast.StringNode{BaseNode: &ast.BaseNode{}, Token: nowhere}, &document{name: name, problems: problems}, ""}}
}

// Visit collects anchors.
func (v Value) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		name := a.Name.String()
		v.anchors[name] = append(v.anchors[name], a)
	}
	return v
}

// of returns a value within v.
func (v Value) of(n ast.Node) Value {
	w := Value{node{n, v.n.doc, v.n.where}, v.anchors, v.depth + 1, v.left}
	w.left.values--
	for range maxForeign {
		switch a := w.n.Node.(type) {
		case *ast.AnchorNode:
			w.n.Node = a.Value
		case *ast.AliasNode:
			to := v.anchored(a)
			if to == nil {
				w.n.fail("names no anchor above it")
				return w
			}
			w.n.Node = to
		default:
			return w
		}
	}
	return w
}

// anchored returns the value of an alias: that of the last anchor above it, or nil.
func (v Value) anchored(alias *ast.AliasNode) ast.Node {
	at := alias.GetToken().Position
	for _, a := range slices.Backward(v.anchors[alias.Value.String()]) {
		if p := a.GetToken().Position; p.Line < at.Line || p.Line == at.Line && p.Column < at.Column {
			return a.Value
		}
	}
	return nil
}

// opens reports whether the values within the value may be read. It notes a problem if not.
func (v Value) opens() bool {
	switch {
	case v.depth > maxForeign:
		v.n.fail("is nested too deeply")
	case v.left.values < 0:
		v.n.fail("brings the values of all files to more than %d, with those that aliases repeat", maxValues)
	default:
		return true
	}
	return false
}

// List returns the values of a list. It notes a problem for any other value, except for an empty one.
func (v Value) List(want string) (values []Value) {
	if v.IsEmpty() || !v.opens() {
		return nil
	}
	list, ok := v.n.Node.(*ast.SequenceNode)
	if !ok {
		v.n.unlike(want)
		return nil
	}
	for _, n := range list.Values {
		values = append(values, v.of(n))
	}
	return values
}

// IsEmpty reports whether the value is missing or null.
func (v Value) IsEmpty() bool {
	_, null := v.n.Node.(*ast.NullNode)
	return null || v.n.Node == nil
}

// Text returns a plain value as the file has it. An empty value is "".
func (v Value) Text(want string) string {
	text, ok := v.n.scalar()
	if !ok && !v.IsEmpty() {
		v.n.unlike(want)
	}
	return text
}

// Whole returns a whole number within bounds, in any form that YAML 1.1 has for it: 010 is 8, and 1_000 is 1000.
func (v Value) Whole(least, most int64) int64 {
	text, _ := v.n.scalar()
	if v.isQuoted() || v.IsEmpty() {
		return v.n.whole(least, most)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
	if err != nil || n < least || n > most {
		v.n.unlike(fmt.Sprintf("a whole number between %d and %d", least, most))
	}
	return n
}

// OneOf returns one of the words, or "".
func (v Value) OneOf(words ...string) string { return v.n.oneOf(words...) }

// flagWords are the words that YAML 1.1 has for flags, in lower case.
var flagWords = map[string]bool{"true": true, "yes": true, "on": true, "y": true, "false": false, "no": false, "off": false, "n": false}

// Flag returns a flag, in any of the words that YAML has for it. An empty value is false.
func (v Value) Flag() bool {
	text, _ := v.n.scalar()
	on, ok := flagWords[strings.ToLower(text)]
	if !ok && !v.IsEmpty() {
		v.n.unlike("true or false")
	}
	return on
}

// Any returns the value as JSON has it: nil, texts, numbers, flags, lists and maps.
func (v Value) Any() any {
	switch n := v.n.Node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		fields, _ := v.Fields("fields")
		m := make(map[string]any, len(fields))
		for _, f := range fields {
			m[f.Name] = f.Any()
		}
		return m
	case *ast.SequenceNode:
		list := []any{}
		for _, one := range v.List("a list") {
			list = append(list, one.Any())
		}
		return list
	case *ast.IntegerNode:
		return n.GetValue()
	case *ast.FloatNode:
		return n.Value
	}
	text := v.Text("a text, a number, true or false")
	if on, flag := flagWords[strings.ToLower(text)]; flag && !v.isQuoted() {
		return on
	}
	if v.IsEmpty() {
		return nil
	}
	return text
}

// isQuoted reports whether the value is a text for its quotes.
func (v Value) isQuoted() bool {
	t := v.n.GetToken().Type
	return t == token.SingleQuoteType || t == token.DoubleQuoteType
}

// Fail notes a problem of the value.
func (v Value) Fail(format string, values ...any) { v.n.fail(format, values...) }

// FailLimit notes the problem of a limit.
func (v Value) FailLimit(err error) { v.n.failLimit(err) }

// Limits reads limits in text form. Slots get the lease of rules without one. It returns nil, and has noted a problem, if it
// cannot.
func (v Value) Limits() []weir.Limit {
	text, ok := v.n.text("a limit, like 10/s or token bucket 5/m burst 10")
	if !ok {
		return nil
	}
	limits, err := weir.ParseLimits(text)
	if err != nil {
		v.n.failLimit(err)
	}
	bound(limits)
	return limits
}

// In names the owner of the value, in problems of it and of values within it.
func (v Value) In(where string) Value {
	v.n.where = where
	return v
}

// Place returns the file and the line of the value.
func (v Value) Place() (file string, line int) { return v.n.doc.name, v.n.token().Position.Line }
