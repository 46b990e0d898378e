// Package ctl has the command ctl, which changes a running daemon and shows what is in force. It asks the admin port, which
// package admin serves.
package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/cmd/weir/internal/xds"
)

// control is the command with the flags that all its commands share.
type control struct {
	client Client
	form   string
}

// Command returns the command ctl.
func Command() *cobra.Command {
	c := &control{}
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "Change a running daemon: block keys, give units back, drain",
		Long: `Ctl asks the admin port of a running weir serve. By default that is the socket of
this user's daemon.

Block, allow and limit put another limit in force for a key, or for all keys with
a prefix, until a time. All daemons on the same Redis follow within a second.
The daemon logs every change. docs/howto/changing-limits.md#a-running-daemon describes more.`,
		Example: `  weir ctl peek login 192.0.2.1
  weir ctl reset login 192.0.2.1
  weir ctl grant login 192.0.2.1 3
  weir ctl block 192.0.2.1 --for 1h
  weir ctl block --prefix bot- --rule api --for 24h
  weir ctl limit acme 1000/s --rule api --until 2026-12-01T00:00:00Z
  weir ctl clear 192.0.2.1
  weir ctl enforce login
  weir ctl overrides --format json`,
		RunE: cli.NoSubcommand("weir ctl --help lists the commands"),
	}
	c.client.AddFlags(cmd)
	cmd.PersistentFlags().StringVar(&c.form, "format", "text", "print `text` or json")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(c.peek(), c.reset(), c.grant(), c.override("block", override.Block), c.override("allow", override.Allow), c.override("limit", ""),
		c.clear(), c.overrides(), c.mode("enforce", "enforced"), c.mode("shadow", "shadow"), c.rules(), c.top(), c.act("snapshot", "Save the state to the file of --state now"),
		c.act("drain", "Stop the daemon: readiness first, then --drain and --grace"))
	return cmd
}

// answer has the fields of all answers.
type answer struct {
	all           json.RawMessage
	Before, After json.RawMessage
	Warnings      []string

	Allowed    bool
	Shadow     bool
	Limit      int64
	Remaining  int64
	RetryAfter *float64 `json:"retry_after"`
	Cause      string

	Overrides []override.Entry
	Keys      []struct {
		top.Count
		Used, Limit int64 // of the fullest keys
	}
	Rules []struct {
		Rule, File string
		Line       int
		Fields     []struct{ Name, Text string }
	}
	Origin *xds.Origin
}

// exactly refuses other arguments than these.
func exactly(words ...string) cobra.PositionalArgs {
	return cli.Arguments(len(words), len(words), cmp.Or(strings.Join(words, " "), "none"))
}

func (c *control) peek() *cobra.Command {
	return &cobra.Command{
		Use: "peek RULE KEY", Short: "Show how full a key is", Example: "  weir ctl peek login 192.0.2.1",
		Args: exactly("RULE", "KEY"), ValidArgsFunction: c.completeRule,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd, http.MethodPost, "/v1/admin/peek", map[string]string{"rule": args[0], "key": args[1]}, func(a answer) string {
				text := fmt.Sprintf("%s of %s remain", cli.Thousands(a.Remaining), cli.Thousands(a.Limit))
				if a.Limit == weir.MaxCount && a.Remaining == a.Limit {
					text = "no limit decides now"
				}
				switch {
				case a.Shadow:
					text += "; the rule is a shadow, which refuses nothing"
				case a.Allowed:
				case a.Cause == weir.ByBan.String() && a.RetryAfter != nil:
					text = "banned for another " + cli.Wait(time.Duration(*a.RetryAfter*float64(time.Second)))
				case a.RetryAfter == nil:
					text += "; a request is never admitted"
				default:
					text += "; the next is admitted in " + cli.Wait(time.Duration(*a.RetryAfter*float64(time.Second)))
				}
				return text + "\n" + warned(a)
			}, "allowed", "limit", "remaining", "retry_after")
		},
	}
}

func (c *control) reset() *cobra.Command {
	return &cobra.Command{
		Use: "reset RULE KEY", Short: "Clear a key, as if it had never been used", Example: "  weir ctl reset login 192.0.2.1",
		Args: exactly("RULE", "KEY"), ValidArgsFunction: c.completeRule,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd, http.MethodPost, "/v1/admin/reset", map[string]any{"rule": args[0], "key": args[1]}, changed, changes...)
		},
	}
}

func (c *control) grant() *cobra.Command {
	return &cobra.Command{
		Use: "grant RULE KEY UNITS", Short: "Give units back to a key", Example: "  weir ctl grant login 192.0.2.1 3",
		Long: `Grant gives back units that the key has used. It cannot give more than it has
used: for that, put another limit in force with weir ctl limit.`,
		Args: exactly("RULE", "KEY", "UNITS"), ValidArgsFunction: c.completeRule,
		RunE: func(cmd *cobra.Command, args []string) error {
			units, err := cli.ParseWhole(args[2])
			if err != nil || units < 1 {
				return cli.Misusef("units are a whole number above 0 in plain digits, like 10", "ctl grant: %q is no number of units", args[2])
			}
			return c.ask(cmd, http.MethodPost, "/v1/admin/grant", map[string]any{"rule": args[0], "key": args[1], "units": units}, changed, changes...)
		},
	}
}

// changes are the fields of the answer to a change.
var changes = []string{"before", "after"}

// changed describes a change.
func changed(a answer) string {
	return "before: " + shown(a.Before) + "\nafter:  " + shown(a.After) + "\n" + warned(a)
}

func warned(a answer) (lines string) {
	for _, warning := range a.Warnings {
		lines += "warning: " + cli.Printable(warning) + "\n"
	}
	return lines
}

func shown(state json.RawMessage) string {
	if string(state) == "null" {
		return "none"
	}
	return cli.Printable(string(state))
}

func (c *control) clear() *cobra.Command {
	var rule string
	var prefix bool
	cmd := &cobra.Command{
		Use: "clear KEY", Short: "End a block, allow or limit", Example: "  weir ctl clear 192.0.2.1\n  weir ctl clear --prefix bot- --rule api",
		Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd, http.MethodPost, "/v1/admin/remove", map[string]any{"rule": rule, "key": args[0], "prefix": prefix}, changed, changes...)
		},
	}
	c.addPlace(cmd, &rule, &prefix)
	return cmd
}

var modeHelp = map[string][2]string{
	"enforce": {"Let a shadow rule refuse", `Enforce lets a rule refuse requests, even if its file or weir serve --shadow makes it
a shadow. Its keys keep the counts of the shadow. All daemons on the same Redis
follow within a second. The mode stays over reloads and restarts until weir ctl
shadow ends it; docs/howto/changing-limits.md#watch-first-enforce-later says more.`},
	"shadow": {"Let a rule decide and count, and refuse nothing", `Shadow lets a rule decide and count and refuse nothing, even if its file enforces it:
the way back from weir ctl enforce. All daemons on the same Redis follow within a second.
The mode stays over reloads and restarts until weir ctl enforce ends it.`},
}

// mode returns the command that gives a rule a mode.
func (c *control) mode(name, mode string) *cobra.Command {
	return &cobra.Command{
		Use: name + " RULE", Short: modeHelp[name][0], Long: modeHelp[name][1], Example: "  weir ctl " + name + " login",
		Args: exactly("RULE"), ValidArgsFunction: c.completeRule,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd, http.MethodPost, "/v1/admin/mode", map[string]string{"rule": args[0], "mode": mode}, changed, changes...)
		},
	}
}

// addPlace adds the flags that say which requests a change is about.
func (c *control) addPlace(cmd *cobra.Command, rule *string, prefix *bool) {
	cmd.Flags().StringVar(rule, "rule", "", "of this `RULE` only (default all rules)")
	cmd.Flags().BoolVar(prefix, "prefix", false, "all keys that begin with KEY")
	_ = cmd.RegisterFlagCompletionFunc("rule", c.completeRule)
}

var overrideHelp = map[string][2]string{
	"block": {"Refuse a key until a time", "  weir ctl block 192.0.2.1 --for 1h\n  weir ctl block --prefix bot- --rule api --for 24h"},
	"allow": {"Exempt a key from limits until a time", "  weir ctl allow acme --rule api --for 1h"},
	"limit": {"Give a key another limit until a time", "  weir ctl limit acme 1000/s --rule api --for 24h\n  weir ctl limit acme '1000/s and 100000/h' --until 2026-12-01T00:00:00Z"},
}

// override returns the command that puts a limit in force: that of the last argument, if it is empty.
func (c *control) override(name, limit string) *cobra.Command {
	e := override.Entry{Limit: limit}
	var until string
	var during time.Duration
	words := []string{"KEY"}
	if limit == "" {
		words = append(words, "LIMIT")
	}
	cmd := &cobra.Command{
		Use: name + " " + strings.Join(words, " "), Short: overrideHelp[name][0], Example: overrideHelp[name][1],
		Args: exactly(words...),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			given := cmd.Flags().Changed("for")
			switch {
			case given && during <= 0:
				return cli.Misusef("use a duration above 0, like 1h", "--for %v: not above 0", during)
			case given == (until != ""):
				return cli.Misusef("say for how long: --for 1h, or --until 2026-12-01T00:00:00Z", "ctl %s: want one of --for and --until", name)
			case given:
				e.Until = endOf(time.Now(), during)
			default:
				if e.Until, err = time.Parse(time.RFC3339, until); err != nil {
					return cli.Misusef("a time is like 2026-12-01T00:00:00Z", "--until %s: not a time", cli.Printable(until))
				}
			}
			if e.Key = args[0]; limit == "" {
				e.Limit = args[1]
			}
			return c.ask(cmd, http.MethodPost, "/v1/admin/override", e, changed, changes...)
		},
	}
	c.addPlace(cmd, &e.Rule, &e.Prefix)
	cmd.Flags().DurationVar(&during, "for", 0, "for this long, like 1h")
	cmd.Flags().StringVar(&until, "until", "", "until this `TIME`, like 2026-12-01T00:00:00Z")
	return cmd
}

// endOf returns when an override ends that lasts for a time at least: on a whole second, which is easier to read.
func endOf(now time.Time, during time.Duration) time.Time {
	end := now.Add(during).UTC()
	if during <= weir.MaxPeriod-time.Second { // the daemon accepts no end beyond MaxPeriod
		end = end.Add(time.Second - 1)
	}
	return end.Truncate(time.Second)
}

func (c *control) overrides() *cobra.Command {
	return &cobra.Command{
		Use: "overrides", Short: "List blocks, allows and limits in force", Example: "  weir ctl overrides --format json", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd, http.MethodGet, "/v1/admin/overrides", nil, func(a answer) string {
				var b strings.Builder
				for _, e := range a.Overrides {
					key, rule := e.Key, "rule "+e.Rule
					if e.Prefix {
						key += "*"
					}
					if e.Rule == "" {
						rule = "all rules"
					}
					fmt.Fprintf(&b, "%s\t%s\t%s\tuntil %s\tby %s\n", cli.Printable(key), cli.Printable(rule), cli.Printable(e.Limit), e.Until.Format(time.RFC3339), cli.Printable(e.By))
				}
				return b.String()
			}, "overrides")
		},
	}
}

func (c *control) rules() *cobra.Command {
	return &cobra.Command{
		Use: "rules", Short: "Show the rules in force", Example: "  weir ctl rules", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd, http.MethodGet, "/v1/admin/rules", nil, func(a answer) string {
				var b strings.Builder
				for _, r := range a.Rules {
					b.WriteString(cli.Printable(r.Rule))
					if r.File != "" {
						fmt.Fprintf(&b, ", %s", cli.Printable(r.File))
					}
					if r.Line > 0 {
						fmt.Fprintf(&b, ":%d", r.Line)
					}
					b.WriteByte('\n')
					for _, f := range r.Fields {
						fmt.Fprintf(&b, "  %-11s %s\n", f.Name, cli.Printable(f.Text))
					}
				}
				writeOrigin(&b, a.Origin, time.Now())
				return b.String()
			}, "rules")
		},
	}
}

// writeOrigin says which pushed rules are in force.
func writeOrigin(b *strings.Builder, o *xds.Origin, now time.Time) {
	if o == nil {
		return
	}
	fmt.Fprintf(b, "control plane %s, node %s: ", cli.Printable(o.Server), cli.Printable(o.Node))
	if o.Connected {
		fmt.Fprintf(b, "connected since %s\n", o.Since.Format(time.RFC3339))
	} else {
		fmt.Fprintf(b, "away since %s: %s\n", o.Since.Format(time.RFC3339), cli.Printable(o.Why))
	}
	if o.Pushed.IsZero() {
		b.WriteString("no rules were pushed yet\n")
		return
	}
	restored := ""
	if o.Restored {
		restored = ", restored from a file"
	}
	fmt.Fprintf(b, "in force: version %s, %s, pushed %s ago%s\n", cli.Printable(o.Version), cli.Plural(int64(o.Resources), "resource"), cli.Duration(now.Sub(o.Pushed).Truncate(time.Second)), restored)
	for _, bad := range o.Bad {
		stays := "nothing of it is in force"
		if bad.Keeps != "" {
			stays = "its version " + cli.Printable(bad.Keeps) + " is in force"
		}
		fmt.Fprintf(b, "refused: %s; %s\n", cli.Printable(bad.Why), stays)
	}
}

// act returns a command without arguments.
func (c *control) act(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Example: "  weir ctl " + name, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.ask(cmd, http.MethodPost, "/v1/admin/"+name, struct{}{}, changed, changes...)
		},
	}
}

// completeRule completes the names of the rules in force, as the first argument or a flag.
func (c *control) completeRule(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	var a answer
	takesRule := strings.Contains(cmd.Use, "RULE")
	if takesRule && len(args) > 0 || c.client.Call(context.Background(), http.MethodGet, "/v1/admin/rules", nil, &a, "rules") != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, r := range a.Rules {
		names = append(names, r.Rule)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
