package rules

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// NoKey returns why no request by attributes has a key under a rule as the key is written, or "" if one may have it. Callers
// of a rule without match send keys of any form. Of rules whose key has no attribute, or several, it says nothing.
func (c *Config) NoKey(rule, key string) string {
	r := c.Rule(rule)
	if r == nil || r.named() || len(r.key) != 1 || !isPlain(key) {
		return ""
	}
	of := c.mentions[r.key[0]]
	if r.hashed {
		if _, err := hex.DecodeString(key); err != nil || len(key) != 32 || key != strings.ToLower(key) {
			return fmt.Sprintf("no request has the key %s of rule %q, whose keys are hashes of %s: printf %%s VALUE | sha256sum | cut -c1-32", shown(key), rule, of.name)
		}
		return ""
	}
	switch want := normalKey(of.family, key); want {
	case key:
		return ""
	case "":
		return fmt.Sprintf("no request has the key %s of rule %q, whose keys are values of %s", shown(key), rule, of.name)
	default:
		return fmt.Sprintf("no request has the key %s of rule %q: there it is %s", shown(key), rule, want)
	}
}
