package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	peers     peers
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
	flags.Var(&o.peers, "peers", "the number of "+sharers+" that share the server; --on-failure local admits the `N`th part of each limit")
	flags.DurationVar(&o.deadline, "deadline", DefaultDeadline, "how long a decision of the server may take")
}

// peers is the number of processes that share a server, or that they are counted there.
type peers struct {
	n         int
	auto      bool
	countable bool // auto is a value
}

// CountPeers lets --peers be auto.
func (o *Layers) CountPeers(cmd *cobra.Command) {
	o.peers.countable = true
	cmd.Flags().Lookup("peers").Usage = "the number of " + o.sharers + " that share the server, or auto to count them there; --on-failure local admits the `N`th part of each limit"
	Offer(cmd, "peers", "auto")
}

// AutoPeers reports whether to count the peers.
func (o *Layers) AutoPeers() bool { return o.peers.auto }

func (p *peers) none() bool { return p.n == 0 && !p.auto }

func (p *peers) String() string {
	if p.auto {
		return "auto"
	}
	return strconv.Itoa(p.n)
}

// Type is that of the number.
func (p *peers) Type() string { return "int" }

// Set reads a number, or auto.
func (p *peers) Set(text string) (err error) {
	p.auto, p.n = p.countable && text == "auto", 0
	if p.auto {
		return nil
	}
	if p.n, err = strconv.Atoi(text); err != nil && p.countable {
		return errors.New("want a whole number, or auto")
	} else if err != nil {
		return errors.New("want a whole number")
	}
	return nil
}

// Given reports whether a flag or a file names a policy.
func (o *Layers) Given() bool { return len(o.onFailure)+len(o.Files) > 0 }

// Shares reports whether a policy answers by a share of the limits, which depends on the number of peers.
func (o *Layers) Shares() bool {
	return slices.Contains(slices.Collect(maps.Values(o.Files)), layer.Local) ||
		slices.ContainsFunc(o.onFailure, func(text string) bool { return strings.HasSuffix(text, layer.Local.String()) })
}

// Policy says what answers while the server is away, among a number of peers.
func (o *Layers) Policy(peers int) string {
	all := slices.Collect(maps.Values(o.Files))
	for _, text := range o.onFailure {
		var p layer.Policy
		if p.UnmarshalText([]byte(text[strings.LastIndexByte(text, '=')+1:])) == nil {
			all = append(all, p)
		}
	}
	common := layer.Deny
	if len(all) > 0 {
		common = all[0]
	}
	for _, p := range all {
		if p != common {
			return "by rule"
		}
	}
	switch {
	case len(all) > 0 && !slices.ContainsFunc(o.onFailure, func(text string) bool { return !strings.Contains(text, "=") }) && common != layer.Deny:
		return "by rule" // the rules that name none are denied
	case common == layer.Local:
		return fmt.Sprintf("local 1/%d", max(peers, 1))
	}
	return common.String()
}

// Check checks the values of the flags.
func (o *Layers) Check() error {
	switch {
	case o.deadline <= 0:
		return Misusef("use a duration above 0, like 15ms", "--deadline %v: not above 0", o.deadline)
	case o.peers.n < 0:
		return Misusef("count this one, too", "--peers %d: a negative number", o.peers.n)
	case o.peers.none() && slices.Contains(slices.Collect(maps.Values(o.Files)), layer.Local):
		return Misusef("say how many "+o.sharers+" share the server: peers: 3 in the file, or --peers 3", "--config: on_failure: local without --peers")
	case o.peers.none() && slices.ContainsFunc(o.onFailure, func(text string) bool { return strings.HasSuffix(text, layer.Local.String()) }):
		return Misusef("say how many "+o.sharers+" share the server: --peers 3", "--on-failure local without --peers")
	}
	return nil
}

// Guard returns the options of the Guard around the engine of some rules.
func (o *Layers) Guard(rules []*weir.Rule) (layer.GuardOptions, error) {
	options := layer.GuardOptions{Rules: map[string]layer.Policy{}, Peers: o.peers.n, Deadline: o.deadline}
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
