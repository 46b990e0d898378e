package ctl

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/live"
)

// ruleName names a rule, with a mark for a shadow, which refuses nothing.
func ruleName(rule string, isShadow bool) string {
	if isShadow {
		return cli.Printable(rule) + " (shadow)"
	}
	return cli.Printable(rule)
}

func (c *control) top() *cobra.Command {
	by, n, watch := "taken", 10, false
	cmd := &cobra.Command{
		Use: "top [RULE]", Short: "List the keys with the most calls, or nearest to their limit", Example: "  weir ctl top login --by refused\n  weir ctl top login --by used -n 20\n  weir ctl top --watch", Args: cli.Arguments(0, 1, "one RULE at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch {
				s := &screen{lines: n, by: by, given: cmd.Flags().Changed("by"), rules: map[string]live.RuleLine{}}
				if len(args) == 1 {
					s.only = args[0]
				}
				return c.watch(cmd, s)
			}
			query := url.Values{"by": {by}, "n": {strconv.Itoa(n)}}
			if len(args) == 1 {
				query.Set("rule", args[0])
			}
			return c.ask(cmd, http.MethodGet, "/v1/top?"+query.Encode(), nil, func(a answer) string {
				var b strings.Builder
				for _, k := range a.Keys {
					if k.Limit > 0 {
						fmt.Fprintf(&b, "%d of %d\t%s\t%s\n", k.Used, k.Limit, ruleName(k.Rule, k.Shadow), cli.Printable(k.Key))
						continue
					}
					fmt.Fprintf(&b, "%d\t%s\t%s\n", k.Count.Count, ruleName(k.Rule, k.Shadow), cli.Printable(k.Key))
				}
				if by == "used" {
					return cmp.Or(b.String(), "no key has used anything, as far as samples show\n")
				}
				return cmp.Or(b.String(), "no calls\n")
			}, "keys")
		},
	}
	cmd.Flags().StringVar(&by, "by", by, "list keys by the calls that the rule has `taken` (admitted) or refused, or by the part of its limit that they have used, by samples")
	cmd.Flags().IntVarP(&n, "number", "n", n, "list at most `N` keys")
	cmd.Flags().BoolVar(&watch, "watch", false, "show the figures of the daemon, rules and keys, each second until it is interrupted")
	cli.Offer(cmd, "by", "taken", "refused", "used")
	return cmd
}
