package rules

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/front"
)

// readEstimate reads how many units a reservation holds.
func (d *draft) readEstimate(n node) {
	d.Estimate = &front.EstimateOptions{}
	if _, plain := n.scalar(); plain {
		d.readQuantile(n)
		return
	}
	given := estimateFields.read(n, "an estimate", d)
	if given["quantile"].Node == nil && len(given) > 0 {
		n.fail("has no quantile, want quantile: p95")
	}
	if most, bounded := given["max"]; bounded && d.Estimate.Max < d.Estimate.Min {
		most.fail("is %d, below min, which is %d", d.Estimate.Max, d.Estimate.Min)
	}
}

// quantileForm is p1 to p99.
var quantileForm = regexp.MustCompile(`^p([1-9][0-9]?)$`)

func (d *draft) readQuantile(n node) {
	const want = "p1 to p99, like p95: what 95 of 100 calls do not exceed"
	text, ok := n.text(want)
	found := quantileForm.FindStringSubmatch(text)
	if ok && found == nil {
		n.fail("is %s, want %s", plain.Quoted(text), want)
		return
	}
	if ok {
		d.Estimate.Percent, _ = strconv.Atoi(found[1])
	}
}

// completeEstimate sets the bounds that the file leaves out, once the limit is known.
func (d *draft) completeEstimate() {
	e := d.Estimate
	if e == nil || d.Limit == nil {
		return
	}
	n := d.given["estimate"]
	if weir.Kit.Held(d.Limit) != nil {
		n.fail("is of units that work uses, and %s holds slots; give the slots a rule of their own", LimitText(d.Limit))
		return
	}
	most := LargestCost(d.Limit)
	if e.Min == 0 {
		e.Min = 1
	}
	switch {
	case e.Max == 0 && e.Min > most, e.Max > most:
		n.fail("may be %d, above %d, the largest cost that %s admits; lower max", max(e.Max, e.Min), most, LimitText(d.Limit))
	case e.Max == 0:
		e.Max = most
	}
}

func estimateText(e *front.EstimateOptions) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf("p%d, min %d, max %d", e.Percent, e.Min, e.Max)
}

// Estimates returns how many units reservations hold under the rules that say so, by name.
func (c *Config) Estimates() map[string]front.EstimateOptions {
	estimates := map[string]front.EstimateOptions{}
	for _, r := range c.Rules {
		if r.Estimate != nil {
			estimates[r.Name] = *r.Estimate
		}
	}
	return estimates
}

// LargestCost returns the largest cost that limits admit.
func LargestCost(limits *weir.Rule) int64 {
	most := int64(weir.MaxCount)
	for _, l := range limits.Limits() {
		most = min(most, weir.Describe(l).Capacity)
	}
	return most
}
