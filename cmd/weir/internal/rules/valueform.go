package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// valueForm is the form of the values of an attribute in the keys of a rule, or of their beginnings.
type valueForm struct {
	attribute
	rule   *Rule
	slot   int
	prefix bool
}

// has reports whether a request that the rule matches may have a value, which is escaped as in keys.
func (f valueForm) has(part string) bool {
	if part == missingText {
		return f.rule.missing == MissingShare && !slices.ContainsFunc(f.rule.match, func(c condition) bool { return c.slot == f.slot })
	}
	if !f.valid(part) {
		return false
	}
	p := f.pattern(unescaper.Replace(part))
	for i := range f.rule.match {
		if c := &f.rule.match[i]; c.slot == f.slot && !slices.ContainsFunc(c.patterns, func(q pattern) bool { return q.meets(&p) }) {
			return false
		}
	}
	return !slices.ContainsFunc(f.rule.except, func(c condition) bool {
		return c.slot == f.slot && slices.ContainsFunc(c.patterns, func(q pattern) bool { return q.covers(&p) })
	})
}

// valid reports whether a part of a key is a value of the attribute, or the beginning of one.
func (f valueForm) valid(part string) bool {
	text := unescaper.Replace(part)
	switch {
	case f.prefix && isHalf(part):
		before := unescaper.Replace(part[:len(part)-1])
		return part == `\` || f.begins(before+`\`) || f.begins(before+"|")
	case escaped(text) != part:
		return false
	case f.prefix:
		return f.begins(text)
	}
	return f.holds(text)
}

// isHalf reports whether a part ends within an escaped character.
func isHalf(part string) bool {
	return (len(part)-len(strings.TrimRight(part, `\`)))%2 == 1
}

func escaped(text string) string {
	var b strings.Builder
	escape(&b, text)
	return b.String()
}

// holds reports whether a text is a value in its normal form.
func (f valueForm) holds(text string) bool {
	v := writtenValue(f.family, text)
	return v.present && !v.unclear && v.key == text
}

// begins reports whether a value in its normal form begins with a text.
func (f valueForm) begins(text string) bool {
	return text == "" || slices.ContainsFunc(endings[f.family], func(end string) bool { return f.holds(text + end) }) || f.holds(text+"x") || f.holds(text)
}

// endings complete beginnings of addresses: one of them does if any does.
var endings = map[family][]string{
	asAddress: {".0.0.0", ".0.0", ".0", "0.0.0.0", "0.0.0", "0.0", "0", "::/64", ":/64", "1::/64", ":1::/64", "/64", "64", "4"},
	asHost:    {":1", "::1", ":1:1", ":1:1:1", ":1:1:1:1", ":1:1:1:1:1", ":1:1:1:1:1:1", ":1:1:1:1:1:1:1", "1", "1:1", "1:1:1", "1:1:1:1", "1:1:1:1:1", "1:1:1:1:1:1"},
}

// pattern fits the values in a normal form that are a text, or that begin with it.
func (f valueForm) pattern(text string) pattern {
	switch {
	case f.family == asAddress && f.prefix:
		if covered, ok := networkOf(text); ok {
			return pattern{kind: network, network: covered}
		}
		return pattern{kind: present}
	case f.family == asAddress:
		covered, err := netip.ParsePrefix(text)
		if err != nil {
			address := normal(asAddress, text).address
			covered = netip.PrefixFrom(address, address.BitLen())
		}
		return pattern{kind: network, network: covered}
	case f.prefix:
		return pattern{kind: prefix, head: text}
	}
	return pattern{kind: exact, head: writtenValue(f.family, text).text}
}

// networkOf returns the network of the addresses whose keys begin with a text that ends in a dot or a colon.
func networkOf(beginning string) (covered netip.Prefix, ok bool) {
	if n := strings.Count(beginning, "."); n > 0 {
		address, err := netip.ParseAddr(beginning + strings.Repeat("0.", 3-min(n, 3)) + "0")
		return netip.PrefixFrom(address, 8*n), err == nil && strings.HasSuffix(beginning, ".")
	}
	address, err := netip.ParseAddr(beginning + ":")
	return netip.PrefixFrom(address, 16*strings.Count(beginning, ":")), err == nil && strings.Count(beginning, "::") == 0
}

// networkAdvice says how to reach a network, in place of a part of a key that is one, or returns "".
func (f valueForm) networkAdvice(part string, first bool) string {
	asked, err := netip.ParsePrefix(strings.TrimSpace(part))
	if err != nil || f.family != asAddress || writtenValue(asAddress, part).present {
		return ""
	}
	asked = asked.Masked()
	if beginning := beginningOf(asked); first && beginning != "" {
		if f.prefix = true; f.has(beginning) {
			return fmt.Sprintf("its keys are of single clients, and those of this network begin with --prefix %s", beginning)
		}
	}
	return fmt.Sprintf("its keys are of single clients, and no prefix is this network alone: a rule with deny: true and match: {%s: %s} refuses it", f.name, asked)
}

// beginningOf returns how the keys of all addresses of a network begin, and no other keys, or "".
func beginningOf(asked netip.Prefix) string {
	bits, address := asked.Bits(), asked.Addr().AsSlice()
	var groups []string
	switch {
	case asked.Addr().Is4In6() || bits == 0:
	case asked.Addr().Is4() && bits%8 == 0:
		for _, b := range address[:bits/8] {
			groups = append(groups, fmt.Sprint(b))
		}
		return strings.Join(groups, ".") + "."
	case bits%16 == 0 && address[bits/8-2]|address[bits/8-1] != 0: // otherwise a key may have :: in place of the last group
		for i := 0; i < bits/8; i += 2 {
			groups = append(groups, fmt.Sprintf("%x", int(address[i])<<8|int(address[i+1])))
		}
		return strings.Join(groups, ":") + ":"
	}
	return ""
}
