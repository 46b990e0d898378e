package rules

import (
	"maps"
	"slices"

	"github.com/weirflow/weir"
)

// warnOfIdle warns of fields of a rule that change no decision beside its other fields.
func (d *draft) warnOfIdle() {
	d.warnOfExcept()
	d.warnOfCost()
	d.warnOfLimits()
	d.warnOfHashes()
	if n, given := d.given["message"]; given && d.Limit != nil && !slices.ContainsFunc(d.limits(), refuses) {
		d.warn(n, "has no effect, because the rule refuses no request: its limit is unlimited")
	}
}

// refuses reports whether a limit refuses anything.
func refuses(limits *weir.Rule) bool {
	return slices.ContainsFunc(limits.Limits(), func(l weir.Limit) bool { return l != weir.Unlimited{} })
}

// warnOfExcept warns of exceptions that no request has which the rule matches otherwise.
func (d *draft) warnOfExcept() {
	n, given := d.given["except"]
	if !given {
		return
	}
	members, _ := n.members("")
	ofHTTP, ofEnvoy := d.loader.config.doorsOf(d.matchSlots())
	for i, m := range members { // in the order of the conditions, because the rule is sound
		c := &d.except[i]
		name := d.loader.config.mentions[c.slot].name
		if other := ofHTTP + ofEnvoy; (ofHTTP == "") != (ofEnvoy == "") && isOfDoor(name) && isOfEnvoy(name) != (ofEnvoy != "") {
			d.warn(m.key, "excepts nothing: match has %s, and neither gateways nor Envoy send that beside %s", shown(other), shown(name))
			continue
		}
		at := slices.IndexFunc(d.match, func(other condition) bool { return other.slot == c.slot })
		if at < 0 {
			continue
		}
		for j, v := range m.list(maxPatterns) {
			one := condition{slot: c.slot, patterns: c.patterns[j : j+1]}
			if !one.meets(&d.match[at]) {
				d.warn(v, "excepts nothing: no %s fits both it and match", name)
			}
		}
	}
}

// warnOfCost warns of costs that no request is admitted with, or that count nothing.
func (d *draft) warnOfCost() {
	n, given := d.given["cost"]
	switch {
	case !given || d.Limit == nil || d.costFrom >= 0 && d.cost == 0:
	case d.cost == 0:
		d.warn(n, "counts nothing, so the rule refuses no request")
	default:
		what := "is"
		if d.costFrom >= 0 {
			what = "of requests without " + d.loader.config.mentions[d.costFrom].name + " is"
		}
		for _, limits := range d.limits() {
			if most := capacityOf(limits); most > 0 && most < d.cost {
				d.warn(n, "%s %d, above %d, the largest cost that %s admits, so that limit refuses all of them", what, d.cost, most, LimitText(limits))
				return
			}
		}
	}
}

// capacityOf returns the largest cost that limits admit.
func capacityOf(limits *weir.Rule) int64 {
	most := int64(weir.MaxCount)
	for _, l := range limits.Limits() {
		most = min(most, weir.Describe(l).Capacity)
	}
	return most
}

// warnOfLimits warns of limits that change no decision beside others of the same list.
func (d *draft) warnOfLimits() {
	warn := func(n node, all ...*weir.Rule) {
		for _, limits := range all {
			switch list := limits.Limits(); {
			case len(list) == 1:
			case slices.Contains(list, weir.Limit(weir.DenyAll{})):
				d.warn(n, "has deny all beside other limits, which then have no effect")
			case slices.Contains(list, weir.Limit(weir.Unlimited{})):
				d.warn(n, "has unlimited beside other limits, beside which it has no effect")
			}
		}
	}
	if d.limitNode.Node != nil {
		warn(d.limitNode, d.Limit)
	}
	warn(d.planNode, slices.Collect(maps.Values(d.plans))...)
	warn(d.keyNode, slices.Collect(maps.Values(d.keys))...)
}

// warnOfHashes warns of single keys that look like the hashes that engines have in place of them.
func (d *draft) warnOfHashes() {
	if !d.hashed {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(d.keys)) {
		if (keyForm{d.loader.config, d.Rule, false}).isHash(name) {
			d.warn(d.keyNode, "has %s, which looks like the hash of a key: keys of files are values", shown(name))
		}
	}
}
