package replay

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/accesslog"
)

// fieldsOf are the fields of a log for those attributes of rules that it has under other names, the best first.
var fieldsOf = map[string][]string{"request_uri": {"uri"}, "uri": {"path"}, "port": {"server_port", "port"}}

// keep makes the reader count the requests that fit the patterns of --where, as a rule would match them. It notes the attributes that
// no request has.
func (o *readOptions) keep(reader *accesslog.Reader) error {
	if len(o.where) == 0 {
		return nil
	}
	config, names, err := o.filter()
	if err != nil {
		return err
	}
	entry := logged{slots: map[string][]accesslog.Slot{}}
	for name := range names {
		fields := fieldsOf[name]
		if fields == nil {
			fields = []string{name}
		}
		for _, field := range fields {
			entry.slots[name] = append(entry.slots[name], reader.Want(field))
		}
	}
	asked := false
	reader.Keep(func(e *accesslog.Entry) bool {
		entry.Entry = e
		if !asked {
			asked, o.lacking = true, slices.Sorted(maps.Keys(names))
		}
		o.lacking = slices.DeleteFunc(o.lacking, entry.has)
		return len(config.Matches(entry)) > 0
	})
	return nil
}

// filter returns a rule that matches what fits all attributes, and their patterns.
func (o *readOptions) filter() (config *rules.Config, match map[string][]string, err error) {
	const form = "an attribute and a pattern are like path=/api/*, method=POST, client=10.0.0.0/8 or header.user-agent=~bot"
	match = map[string][]string{}
	var declared []string
	for _, text := range o.where {
		name, pattern, found := strings.Cut(text, "=")
		if !found || name == "" || pattern == "" {
			return nil, nil, cli.Misusef(form, "--where: %q is no ATTRIBUTE=PATTERN", text)
		}
		name = rules.AttributeName(name)
		if match[name] == nil && !new(rules.Config).CanRead(name) {
			declared = append(declared, name)
		}
		match[name] = append(match[name], pattern)
	}
	content := map[string]any{"rules": []any{map[string]any{"name": "where", "match": match, "unlimited": true}}}
	if len(declared) > 0 {
		content["attributes"] = declared
	}
	file, err := json.Marshal(content)
	if err != nil {
		return nil, nil, err
	}
	config, err = rules.Parse(rules.Options{}, rules.File{Name: "--where", Content: file})
	if problems, ok := err.(rules.Problems); ok && len(problems) > 0 {
		return nil, nil, cli.Misusef(form, "--where: %s", problems[0].Text)
	}
	return config, match, err
}

// logged is the request of an entry, as rules read it.
type logged struct {
	*accesslog.Entry
	slots map[string][]accesslog.Slot
}

// Attribute returns the value of an attribute.
func (l logged) Attribute(name string) (value string, ok bool) {
	for _, slot := range l.slots[name] {
		if text, ok := l.Value(slot); text != nil {
			return string(text), ok
		}
	}
	return "", false
}

// has reports whether the line has an attribute, if only to say that the request had none.
func (l logged) has(name string) bool {
	return slices.ContainsFunc(l.slots[name], func(slot accesslog.Slot) bool {
		text, _ := l.Value(slot)
		return text != nil
	})
}
