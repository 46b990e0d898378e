package serve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// defaultLease bounds the time that a slot is held, unless its rule has a lease. An HTTP client that dies cannot
// release its slots, so every slot must expire.
const defaultLease = time.Minute

// withLeases returns the rule with a lease on each limit on slots.
func withLeases(rule *weir.Rule) (*weir.Rule, error) {
	limits := rule.Limits()
	for i, limit := range limits {
		if d := weir.Describe(limit); d.Held && d.Lease == 0 {
			limits[i] = weir.Concurrency{Slots: d.Capacity, Lease: defaultLease}
		}
	}
	return weir.NewRule(rule.Name(), limits...)
}

// defaultRule is the rule of a daemon without --rule.
const defaultRule = "default=token bucket 10/s burst 20"

// parseRules reads the rules of the flags, which differ in name, or returns the default rule if there are none.
func parseRules(texts []string) ([]*weir.Rule, error) {
	var rules []*weir.Rule
	if len(texts) == 0 {
		texts = []string{defaultRule}
	}
	for _, text := range texts {
		rule, err := weir.ParseRule(text)
		if err != nil {
			return nil, cli.LimitError("--rule", err, cli.RuleForms)
		}
		if rule, err = withLeases(rule); err != nil {
			return nil, err
		}
		named := func(r *weir.Rule) bool { return r.Name() == rule.Name() }
		if i := slices.IndexFunc(rules, named); i >= 0 {
			return nil, cli.Misuse(fmt.Errorf("--rule %s and --rule %s have the same name", cli.Printable(texts[i]), cli.Printable(text)),
				"join several limits of one rule with 'and': --rule 'login=5/m and 100/d'")
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// completeRule completes the limit after the name of a rule.
func completeRule(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	name, limit, named := strings.Cut(text, "=")
	if !named {
		return []string{cmp.Or(name, "default") + "="}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	limits, directive := cli.CompleteLimit(cli.RuleLimits)(cmd, args, limit)
	for i := range limits {
		limits[i] = name + "=" + limits[i]
	}
	return limits, directive
}
