package cli

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// Layers are the flags of the layers around a server: Redis or a database.
type Layers struct {
	Files     map[string]layer.Policy // of rules in files, which flags override
	onFailure []string                // RULE=POLICY, or a policy for the other rules
	peers     int
	deadline  time.Duration
	sharers   string // of the server: "daemons"
}

// LayerFlags are the names of these flags.
var LayerFlags = []string{"on-failure", "peers", "deadline"}

// DefaultDeadline is that of a decision.
const DefaultDeadline = 15 * time.Millisecond

// AddFlags adds the flags of a command that shares a server with others of its kind, such as daemons.
func (o *Layers) AddFlags(cmd *cobra.Command, sharers string) {
	o.sharers = sharers
	flags := cmd.Flags()
	flags.StringArrayVar(&o.onFailure, "on-failure", nil, "while the server of --engine is away, answer `[RULE=]POLICY`: deny, allow, or local, by a share of the limits (default deny)")
	flags.IntVar(&o.peers, "peers", 0, "the number of "+sharers+" that share the server; --on-failure local admits the `N`th part of each limit")
	flags.DurationVar(&o.deadline, "deadline", DefaultDeadline, "how long a decision of the server may take")
}

// Given reports whether a flag or a file names a policy.
func (o *Layers) Given() bool { return len(o.onFailure)+len(o.Files) > 0 }

// Shares reports whether a policy answers by a share of the limits, for which the number of peers counts.
func (o *Layers) Shares() bool {
	return slices.Contains(slices.Collect(maps.Values(o.Files)), layer.Local) ||
		slices.ContainsFunc(o.onFailure, func(text string) bool { return strings.HasSuffix(text, layer.Local.String()) })
}

// Check checks the values of the flags.
func (o *Layers) Check() error {
	switch {
	case o.deadline <= 0:
		return Misusef("use a duration above 0, like 15ms", "--deadline %v: not above 0", o.deadline)
	case o.peers < 0:
		return Misusef("count this one, too", "--peers %d: a negative number", o.peers)
	case o.peers == 0 && slices.Contains(slices.Collect(maps.Values(o.Files)), layer.Local):
		return Misusef("say how many "+o.sharers+" share the server: peers: 3 in the file, or --peers 3", "--config: on_failure: local without --peers")
	case o.peers == 0 && slices.ContainsFunc(o.onFailure, func(text string) bool { return strings.HasSuffix(text, layer.Local.String()) }):
		return Misusef("say how many "+o.sharers+" share the server: --peers 3", "--on-failure local without --peers")
	}
	return nil
}

// Guard returns the options of the Guard around the engine of some rules.
func (o *Layers) Guard(rules []*weir.Rule) (layer.GuardOptions, error) {
	options := layer.GuardOptions{Rules: map[string]layer.Policy{}, Peers: o.peers, Deadline: o.deadline}
	maps.Copy(options.Rules, o.Files)
	given := map[string]bool{}
	for _, text := range o.onFailure {
		name, policy := "", text
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			name, policy = text[:at], text[at+1:]
		}
		var p layer.Policy
		if err := p.UnmarshalText([]byte(policy)); err != nil {
			return options, Misusef("use deny, allow or local, or one of them for a rule: login=local", "--on-failure %s: no policy", Printable(text))
		}
		known := func(r *weir.Rule) bool { return r.Name() == name }
		switch {
		case given[name]:
			return options, Misusef("leave one of them out", "--on-failure %s: there is another policy for the same rules", Printable(text))
		case name == "":
			options.OnFailure = p
		case !slices.ContainsFunc(rules, known):
			return options, Misusef(noSuchRule(rules), "--on-failure %s: no such rule", Printable(text))
		default:
			options.Rules[name] = p
		}
		given[name] = true
	}
	return options, nil
}

func noSuchRule(rules []*weir.Rule) string {
	if len(rules) == 0 {
		return "there is one rule: leave its name out"
	}
	return "name a rule of --rule"
}
