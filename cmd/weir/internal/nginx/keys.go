package nginx

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/imported"
)

// key is the key of a zone in attributes.
type key struct {
	attributes []string
	skips      bool              // requests without it are not limited
	match      imported.Patterns // if not empty, only these requests have a key
	except     imported.Patterns // these have none
}

// attributes are the variables of nginx with a counterpart.
var attributes = map[string]string{
	"binary_remote_addr": "client", "remote_addr": "client", "host": "host", "http_host": "host", "server_name": "host",
	"request_uri": "path", "uri": "path", "document_uri": "path", "request_method": "method",
}

var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// attributeOf returns the attribute of a variable.
func attributeOf(name string) (string, bool) {
	if header, ok := strings.CutPrefix(name, "http_"); ok && name != "http_host" {
		return "header." + strings.ReplaceAll(header, "_", "-"), true
	}
	attribute, ok := attributes[name]
	return attribute, ok
}

// keyOf reads a key, like $binary_remote_addr or ${server_name}:$uri. Text between variables separates them, which keys of
// rules do anyway.
func (c *converter) keyOf(text string) (k key, err error) {
	found := variable.FindAllStringSubmatch(text, -1)
	if len(found) == 1 && found[0][0] == text {
		if d := c.variables["$"+found[0][1]+found[0][2]]; d != nil {
			return c.keyByTable(d)
		}
	}
	k.skips = strings.TrimSpace(variable.ReplaceAllString(text, "")) == ""
	for _, one := range found {
		name := one[1] + one[2]
		attribute, ok := attributeOf(name)
		if !ok {
			return k, fmt.Errorf("$%s has no counterpart among the attributes of requests", name)
		}
		if !strings.HasPrefix(attribute, "header.") {
			k.skips = false // it is never empty
		}
		if !slices.Contains(k.attributes, attribute) {
			k.attributes = append(k.attributes, attribute)
		}
	}
	if k.skips && len(k.attributes) > 1 {
		return k, errors.New("a key of several header fields, all of which may be missing, has no counterpart")
	}
	return k, nil
}

// entry is a line of a map or geo block.
type entry struct{ pattern, value string }

// table returns the attribute that a map or geo block looks at, its lines, and its default.
func table(d *directive) (source string, entries []entry, otherwise string, err error) {
	source = d.arg(0)
	if d.name() == "geo" && len(d.words) == 2 {
		source = "$remote_addr"
	}
	for _, line := range d.block {
		switch line.name() {
		case "hostnames", "volatile":
			continue
		case "default":
			otherwise = line.arg(0)
			continue
		case "ranges", "proxy", "proxy_recursive", "delete":
			return "", nil, "", fmt.Errorf("%s of %s has no counterpart", line.name(), d)
		}
		if strings.HasPrefix(line.name(), "~") {
			return "", nil, "", fmt.Errorf("the regular expression %s has no counterpart", line.name())
		}
		entries = append(entries, entry{line.name(), line.arg(0)})
	}
	return source, entries, otherwise, nil
}

// keyByTable reads a key that a map chooses: usually the address of the client, and nothing for some clients.
func (c *converter) keyByTable(d *directive) (k key, err error) {
	source, entries, otherwise, err := c.resolve(d, 0)
	if err != nil {
		return k, err
	}
	attribute, ok := attributeOf(strings.Trim(strings.TrimPrefix(source, "$"), "{}"))
	if !ok {
		return k, fmt.Errorf("%s of %s has no counterpart among the attributes of requests", source, d)
	}
	var with, without []string
	text := otherwise
	for _, e := range entries {
		switch {
		case e.value == "":
			without = append(without, e.pattern)
		case text == "" || text == e.value:
			text = e.value
			with = append(with, e.pattern)
		default:
			return k, fmt.Errorf("the keys %s and %s of %s differ", text, e.value, d)
		}
	}
	if text == "" {
		return k, fmt.Errorf("%s leaves no key to count by", d)
	}
	if !strings.HasPrefix(text, "$") {
		return k, fmt.Errorf("the key %s is the same for all requests", text)
	}
	if k, err = c.keyOf(text); err != nil {
		return k, err
	}
	if k.match != nil || k.except != nil {
		return k, errors.New("maps of maps of keys have no counterpart")
	}
	switch {
	case otherwise == "":
		k.match = imported.Patterns{attribute: with}
		if len(without) > 0 {
			k.except = imported.Patterns{attribute: without}
		}
	case len(with) > 0 && len(without) > 0:
		return k, fmt.Errorf("%s has a key again within what it spares", d)
	case len(without) > 0:
		k.except = imported.Patterns{attribute: without}
	}
	return k, nil
}

// resolve follows a map whose source is another map or geo block.
func (c *converter) resolve(d *directive, depth int) (source string, entries []entry, otherwise string, err error) {
	if source, entries, otherwise, err = table(d); err != nil {
		return "", nil, "", err
	}
	under := c.variables[source]
	if under == nil || under == d {
		return source, entries, otherwise, nil
	}
	if depth > 8 {
		return "", nil, "", errors.New("maps follow one another too often")
	}
	values := map[string]string{}
	for _, e := range entries {
		values[e.pattern] = e.value
	}
	of := func(value string) string {
		if mapped, ok := values[value]; ok {
			return mapped
		}
		return otherwise
	}
	source, below, belowDefault, err := c.resolve(under, depth+1)
	for i := range below {
		below[i].value = of(below[i].value)
	}
	return source, below, of(belowDefault), err
}
