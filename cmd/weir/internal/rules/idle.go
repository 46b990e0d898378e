package rules

import (
	"slices"

	"github.com/weirflow/weir"
)

// warnOfIdle warns of fields of a rule that change no decision beside its other fields.
func (d *draft) warnOfIdle() {
	d.warnOfExcept()
	d.warnOfCost()
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
	case !given || d.costFrom >= 0 || d.Limit == nil:
	case d.cost == 0:
		d.warn(n, "counts nothing, so the rule refuses no request")
	default:
		for _, limits := range d.limits() {
			if most := capacityOf(limits); most > 0 && most < d.cost {
				d.warn(n, "is above %d, the largest cost that %s admits, so that limit refuses every request", most, limitText(limits))
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
