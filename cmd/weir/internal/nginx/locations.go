package nginx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// location is a location block.
type location struct {
	scope
	pattern
	first  bool // ^~, which goes before regular expressions
	inside []*location
}

// locations are the scopes of a server, and how nginx chooses one by the path of a request.
type locations struct {
	scopes []scope // the first is the server
	paths  choice  // to scopes
	named  map[string]int
	odd    string // why rules cannot tell them apart
}

func newLocations(around scope) *locations {
	ls := &locations{scopes: []scope{around}, named: map[string]int{}}
	tree := ls.read(around)
	ls.checkNested(tree, false)
	exacts, prefixes := texts(tree)
	for _, text := range exacts {
		if _, found := find(tree, text); found.form == exactly {
			ls.paths.add(found.pattern, ls.scope(found))
		}
	}
	slices.SortStableFunc(prefixes, func(a, b string) int { return len(b) - len(a) })
	expressions := slices.DeleteFunc(slices.Clone(tree), func(l *location) bool { return l.form != matching })
	var later choice
	for _, text := range prefixes {
		p := prefix(text)
		if text == "/" || text == "" { // that all paths begin with
			p = pattern{form: every}
		}
		switch top, found := find(tree, text+"\x01"); { // which no longer prefix and no exact location has
		case found == nil: // nginx refuses a location outside the one around it
		case top.first || len(expressions) == 0:
			ls.paths.add(p, ls.scope(found))
		default:
			later.add(p, ls.scope(found))
		}
	}
	for _, l := range later {
		if ls.paths.get(l.text+"\x01") != "" {
			ls.strange(around.directive, "has a location within a ^~ location, beside regular expressions")
		}
	}
	for _, l := range expressions {
		ls.paths.add(l.pattern, ls.scope(l))
	}
	for _, l := range later {
		ls.paths.add(l.pattern, l.target)
	}
	ls.paths.add(pattern{form: every}, "0")
	return ls
}

func (ls *locations) strange(d *directive, why string) {
	if ls.odd == "" {
		ls.odd = fmt.Sprintf("%s (line %d) %s", d, d.line, why)
	}
}

// scope returns the number of the scope of a location.
func (ls *locations) scope(l *location) string {
	return strconv.Itoa(slices.IndexFunc(ls.scopes, func(p scope) bool { return p.directive == l.directive }))
}

// of returns the scope of a path.
func (ls *locations) of(path string) int {
	n, _ := strconv.Atoi(ls.paths.get(path))
	return n
}

// read returns the locations of a block.
func (ls *locations) read(around scope) (tree []*location) {
	for _, d := range around.block {
		if d.name() != "location" {
			continue
		}
		l := &location{scope: around.within(d)}
		ls.scopes = append(ls.scopes, l.scope)
		mark, text := kindOf(d)
		if strings.HasPrefix(text, "@") {
			ls.named[text] = len(ls.scopes) - 1
			continue
		}
		var err error
		switch mark {
		case "=":
			l.pattern = exact(text)
		case "~", "~*":
			l.pattern, err = expression(text, mark == "~*")
		default:
			l.pattern, l.first = prefix(text), mark == "^~"
		}
		if l.inside = ls.read(l.scope); err != nil {
			ls.strange(d, "cannot be matched: "+err.Error())
			continue
		}
		tree = append(tree, l)
	}
	return tree
}

// kindOf returns the mark of a location, which may be written without a space behind it, and its text.
func kindOf(d *directive) (mark, text string) {
	if len(d.words) > 2 {
		return d.arg(0), d.arg(1)
	}
	for _, mark := range []string{"=", "^~", "~*", "~"} {
		if text, ok := strings.CutPrefix(d.arg(0), mark); ok {
			return mark, text
		}
	}
	return "", d.arg(0)
}

// checkNested notes regular expressions within locations, and locations within those, unless all limit alike. Rules cannot ask
// two things of one path.
func (ls *locations) checkNested(tree []*location, beside bool) {
	isExpression := func(l *location) bool { return l.form == matching }
	beside = beside || slices.ContainsFunc(tree, isExpression)
	for _, l := range tree {
		ls.checkNested(l.inside, beside)
		switch {
		case len(l.inside) == 0 || !isExpression(l) && !slices.ContainsFunc(l.inside, isExpression):
		case !alike(l.inside, l.scope):
			ls.strange(l.directive, "has locations within it that rules cannot distinguish")
		case !isExpression(l) && beside:
			ls.strange(l.directive, "has regular expressions within, beside others")
		default:
			l.inside = nil
		}
	}
}

func alike(tree []*location, p scope) bool {
	return !slices.ContainsFunc(tree, func(l *location) bool { return !l.like(p) || !alike(l.inside, p) })
}

// texts returns the texts of the locations that are no regular expressions.
func texts(tree []*location) (exacts, prefixes []string) {
	for _, l := range tree {
		switch l.form {
		case exactly:
			exacts = append(exacts, l.text)
		case beginning:
			prefixes = append(prefixes, l.text)
			inner, more := texts(l.inside)
			exacts, prefixes = append(exacts, inner...), append(prefixes, more...)
		}
	}
	return exacts, prefixes
}

// find returns the location that nginx finds for a path before it tries regular expressions, and the outermost location around
// it.
func find(tree []*location, path string) (top, found *location) {
	for _, l := range tree {
		switch {
		case l.form == exactly && l.text == path:
			return l, l
		case l.form == beginning && strings.HasPrefix(path, l.text) && (top == nil || len(l.text) > len(top.text)):
			top = l
		}
	}
	if top != nil {
		if _, found = find(top.inside, path); found == nil {
			found = top
		}
	}
	return top, found
}
