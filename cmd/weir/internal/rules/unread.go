package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// unknownAttribute is the error of an attribute that no rule can read.
func (c *Config) unknownAttribute(name string) error {
	names := append(slices.Sorted(maps.Keys(knownAttributes)), c.declared...)
	meant := otherNames[strings.ToLower(name)]
	if meant == "" {
		meant = nearest(name, names)
	}
	if meant != "" {
		meant = fmt.Sprintf(": did you mean %q?", meant)
	}
	return fmt.Errorf("%s is no attribute that a rule can read%s", plain.Quoted(name), meant)
}

// CheckNames returns an error for a request with an attribute that no rule can read under its name.
func (c *Config) CheckNames(request Attributes) error {
	for _, name := range slices.Sorted(maps.Keys(request)) {
		if !c.CanRead(name) {
			return c.unknownAttribute(name)
		}
	}
	return nil
}

// unread says which attributes of a request count as missing, because their values have no normal form.
func (c *Config) unread(from Source) (notes []string) {
	for i, v := range c.read(from, nil) {
		if text, given := from.Attribute(c.mentions[i].name); given && !v.present {
			notes = append(notes, fmt.Sprintf("%s counts as missing, because %s is no value of it", c.mentions[i].name, plain.Quoted(text)))
		}
	}
	return notes
}
