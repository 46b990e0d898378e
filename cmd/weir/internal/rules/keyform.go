package rules

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// Unnamed says why callers and commands cannot name a rule, or returns "".
func (c *Config) Unnamed(rule string) string {
	switch r := c.Rule(rule); {
	case r == nil:
		return "no rule in force has that name"
	case r.Deny:
		return "it refuses every request that matches, and has no limit"
	case r.Unlimited:
		return "it exempts every request that matches, and has no limit"
	case r.Pool:
		return "it is only asked in place of rules that name it in otherwise: name one of those"
	case r.Budget != "":
		return fmt.Sprintf("it counts in the budget of rule %q: name that one", r.Budget)
	}
	return ""
}

// NoKey says why no request by attributes has a key under a rule or, with prefix, a key that begins with it. It returns "" if
// one may have it, and of rules without match, whose callers name keys of any form. The key is near if it is another form of
// keys that the rule has, so that its writer means those.
func (c *Config) NoKey(rule, key string, prefix bool) (why string, near bool) {
	r := c.Rule(rule)
	if r == nil || r.named() {
		return "", false
	}
	k := keyForm{c, r, prefix}
	bad := k.misfit(key)
	switch parts := splitKey(key); {
	case bad < 0:
		return "", false
	case len(r.key) == 0:
		return `the rule has no key, so the only key is ""`, false
	case r.hashed:
		return k.unhashed(key), false
	case bad == len(parts):
		return k.wrongNumber(key, parts)
	default:
		return k.wrongValue(key, parts[bad], k.at(parts, bad))
	}
}

// NoClient is NoKey of a rule whose key is the address of the client.
func NoClient(key string, prefix bool) (why string, near bool) {
	c := &Config{mentions: []attribute{{"client", asAddress}}, names: map[string]*Rule{"": {any: true, key: []int{0}, missing: MissingShare}}}
	return c.NoKey("", key, prefix)
}

// keyForm is the form of the keys of a rule, or of their beginnings.
type keyForm struct {
	*Config
	rule   *Rule
	prefix bool
}

// misfit returns the index of the first value of a key that no request has, the number of values if no request has so many,
// and -1 if one may have the key.
func (k keyForm) misfit(key string) int {
	parts, n := splitKey(key), len(k.rule.key)
	switch {
	case n == 0 && key == "", k.prefix && key == "", n > 0 && k.isHash(key):
		return -1
	case n == 0, k.rule.hashed, len(parts) > n, len(parts) < n && !k.prefix:
		return len(parts)
	case len(key) > maxKeyBytes: // requests have its hash
		return 0
	}
	for i, part := range parts {
		if !k.at(parts, i).has(part) {
			return i
		}
	}
	return -1
}

// at returns the form of a value of a key. The last one of a prefix is the beginning of a value.
func (k keyForm) at(parts []string, i int) valueForm {
	slot := k.rule.key[i]
	return valueForm{k.mentions[slot], k.rule, slot, k.prefix && i == len(parts)-1}
}

// isHash reports whether a key is the hash of a key, or the beginning of one.
func (k keyForm) isHash(key string) bool {
	want := 32
	if !k.rule.hashed {
		var long bool
		if key, long = strings.CutPrefix(key, hashMark); !long {
			return false
		}
		want = 64
	}
	return strings.Trim(key, "0123456789abcdef") == "" && (len(key) == want || k.prefix && len(key) < want)
}

// unhashed says what keys a rule with hashed ones has, and the hash of a key that is written as it is.
func (k keyForm) unhashed(key string) string {
	if want := k.written(key); want != "" && !k.prefix {
		return "there it is " + want
	}
	return "its keys are hashes of " + k.values()
}

// wrongNumber says what keys a rule has of another number of values, and which prefix reaches those that begin with the values
// given.
func (k keyForm) wrongNumber(key string, parts []string) (why string, near bool) {
	if want := k.written(key); want != "" { // one value, with a separator that is not escaped
		return "there it is " + want, false
	}
	beginning := key + "|"
	if len(parts) < len(k.rule.key) && (keyForm{k.Config, k.rule, true}).misfit(beginning) < 0 {
		return fmt.Sprintf("its keys are %s, and --prefix %s is about those that begin with it", k.values(), plain.Quoted(beginning)), k.mentions[k.rule.key[0]].family != asText
	}
	return "its keys are " + k.values(), false
}

// wrongValue says what keys a rule has in place of one with a value that no request has.
func (k keyForm) wrongValue(key, part string, at valueForm) (why string, near bool) {
	if why := at.networkAdvice(part, at.slot == k.rule.key[0]); why != "" {
		return why, true
	}
	if want := k.otherForm(key); want != "" {
		return "there it is " + want, true
	}
	if len(key) > maxKeyBytes {
		return fmt.Sprintf("it has hashes in place of keys of more than %d bytes", maxKeyBytes), false
	}
	if at.valid(part) {
		return "the rule matches no request with this " + at.name, false
	}
	return "its keys are " + k.values(), false
}

// otherForm returns the key of the rule, or beginning of keys, that this one is another form of, or "".
func (k keyForm) otherForm(key string) string {
	candidates := []string{k.written(key)}
	if k.prefix {
		lower := strings.ToLower(key)
		candidates = append(candidates, lower, strings.ToUpper(key), strings.TrimSpace(key), "/"+lower)
	}
	for _, want := range candidates {
		if want != "" && k.misfit(want) < 0 {
			return want
		}
	}
	return ""
}

// written returns the key that the rule makes of values as requests have them, or "".
func (k keyForm) written(key string) string {
	r, parts := k.rule, []string{key}
	if len(r.key) > 1 {
		parts = splitKey(key)
	}
	if len(parts) != len(r.key) {
		return ""
	}
	values := make([]value, len(k.mentions))
	for i, slot := range r.key {
		text := parts[i]
		if len(r.key) > 1 {
			text = unescaper.Replace(text)
		}
		v := writtenValue(k.mentions[slot].family, text)
		if !v.present || v.unclear {
			return ""
		}
		values[slot] = v
	}
	made, _ := r.keyOf(values)
	return r.stored(made)
}

// values describes the values in a key.
func (k keyForm) values() string {
	names := k.attributeNames(k.rule.key)
	if last := len(names) - 1; last > 0 {
		return "values of " + strings.Join(names[:last], ", ") + " and " + names[last] + ", joined by |"
	}
	return "values of " + names[0]
}

// In keys, which have no such texts otherwise.
const (
	missingText = `\-` // of a missing attribute
	hashMark    = `\#` // before the hash of a key that is too long
)

var unescaper = strings.NewReplacer(`\\`, `\`, `\|`, `|`)

// splitKey splits the key of several attributes. The parts stay escaped.
func splitKey(key string) (parts []string) {
	begin := 0
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '\\':
			i++
		case '|':
			parts, begin = append(parts, key[begin:i]), i+1
		}
	}
	return append(parts, key[begin:])
}
