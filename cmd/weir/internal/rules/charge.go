package rules

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir"
)

// readCharge reads when the cost of a request is known.
func (d *draft) readCharge(n node) {
	if _, plain := n.scalar(); plain {
		d.After = n.oneOf("before", "after") == "after"
		return
	}
	given := chargeFields.read(n, "a charge", d)
	most, bounds := given["most"]
	switch {
	case given["when"].Node == nil && len(given) > 0:
		n.fail("has no when, want when: after")
	case bounds && !d.After:
		most.fail("bounds a cost told after the work, and this charge is before it")
	}
}

// limit reads a limit, or a list of limits.
func (d *draft) limit(n node, name string) *weir.Rule {
	made := d.loader.limit(n, name)
	if made == nil || !d.After {
		return made
	}
	after, err := made.ChargeAfter()
	switch refusal, ok := errors.AsType[*weir.LimitError](err); {
	case ok && refusal.Code == weir.CodeBan:
		d.given["charge"].fail("is after the work, and a ban counts takes that are refused before it; give the ban, and the limit that it guards, a rule of their own")
	case err != nil:
		d.given["charge"].fail("is after the work, and %s holds slots during it; give the slots a rule of their own", LimitText(made))
	}
	return after
}

// mostTold returns the bounds of told costs that rules name, or 0, by their limits.
func mostTold(rules []*Rule) map[*weir.Rule]int64 {
	most := map[*weir.Rule]int64{}
	for _, r := range rules {
		for _, limit := range append(r.limits(), r.Candidate) {
			most[limit] = r.Most
		}
	}
	return most
}

func (r *Rule) chargeText() string {
	if r.Most == 0 {
		return "after"
	}
	return fmt.Sprintf("after, most %d", r.Most)
}
