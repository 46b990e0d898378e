package serve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// shadowOptions is the flag that makes all rules shadows.
type shadowOptions struct{ all bool }

func (o *shadowOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.all, "shadow", false, "only watch: all rules decide and count, and refuse nothing, except those enforced by weir ctl enforce")
}

func (o *shadowOptions) check(compat *compatOptions) error {
	if o.all && compat.on() {
		return cli.Misusef("set SHADOW_MODE=true in the environment, as for envoyproxy/ratelimit", "--shadow with --compat envoyproxy")
	}
	return nil
}

// modes say which rules are shadows: those of the files, all of --shadow, and the changes of weir ctl enforce and
// shadow. They put the rules in force.
type modes struct {
	all   bool
	table *override.Table
	log   *slog.Logger

	mu     sync.Mutex // one change of the rules at a time
	named  []*weir.Rule
	config *rules.Config // as the files have it; nil without files
	last   []override.ModeOf
	said   map[string]bool // about modes, in the log
	use    func(named []*weir.Rule, config *rules.Config)
	turned func(rule string, shadow bool) // told of each rule whose mode weir ctl has changed

	are atomic.Pointer[map[string]bool] // the shadows in force, by name
}

func (o *shadowOptions) modes(table *override.Table, used *inUse, log *slog.Logger) *modes {
	return &modes{all: o.all, table: table, log: log, named: used.named, config: used.config(), last: table.Modes(), said: map[string]bool{}}
}

// read returns the modes of rules.
func (m *modes) read() rules.Modes {
	read := rules.Modes{All: m.all, Rules: map[string]bool{}}
	for _, one := range m.last {
		read.Rules[one.Rule] = one.Mode == override.Shadow
	}
	return read
}

// inForce returns the rules with their modes. The caller holds the lock, or is the first one.
func (m *modes) inForce() (named []*weir.Rule, config *rules.Config) {
	defer func() { m.note(named, config) }()
	read := m.read()
	if m.config != nil {
		config = m.config.Shadowed(read)
		return config.Named(), config
	}
	for _, r := range m.named {
		if read.IsShadow(&rules.Rule{Name: r.Name()}) {
			r = rules.StandIn(r)
		}
		named = append(named, r)
	}
	return named, nil
}

// reload takes over the rules of files that have changed, and returns them with their modes.
func (m *modes) reload(config *rules.Config) *rules.Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.config = config
	named, shadowed := m.inForce()
	m.use(named, shadowed)
	m.tell(shadowed)
	return shadowed
}

// changed puts modes into force that weir ctl has changed, here or at another daemon.
func (m *modes) changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.table.Modes()
	if slices.Equal(now, m.last) {
		return
	}
	before := m.read()
	m.last = now
	read := m.read()
	named, config := m.inForce()
	m.use(named, config)
	for _, r := range m.rules() {
		if was, is := before.IsShadow(r), read.IsShadow(r); was != is {
			m.turned(r.Name, is)
			m.log.Warn(modeText[is], "rule", r.Name)
		}
	}
	m.tell(config)
}

var modeText = map[bool]string{true: "a rule is a shadow now, and refuses nothing", false: "a rule is enforced now"}

// rules returns the rules as files or flags have them.
func (m *modes) rules() (all []*rules.Rule) {
	if m.config != nil {
		return m.config.Rules
	}
	for _, r := range m.named {
		all = append(all, &rules.Rule{Name: r.Name(), Limit: r})
	}
	return all
}

// begin says which rules are shadows at the start.
func (m *modes) begin() {
	_, config := m.inForce()
	if m.all {
		read, enforced, shadows := m.read(), 0, 0
		for _, r := range m.rules() {
			switch {
			case read.IsShadow(r):
				shadows++
			case !r.Pool: // which only enforced rules ask
				enforced++
			}
		}
		m.log.Warn("--shadow: all rules are shadows, which decide and count and refuse nothing; weir ctl enforce RULE puts one in force", "rules", shadows, "enforced", enforced)
	}
	m.tell(config)
}

// tell logs, once, the modes of weir ctl that are not those of the files and flags, and those without effect.
func (m *modes) tell(config *rules.Config) {
	told := map[string]bool{}
	warn := func(message string, one override.ModeOf, values ...any) {
		text := message + fmt.Sprint(one, values)
		if told[text] = true; !m.said[text] {
			m.log.Warn(message, append([]any{"rule", one.Rule, "mode", string(one.Mode), "by", one.By}, values...)...)
		}
	}
	all := m.rules()
	for _, one := range m.last {
		at := slices.IndexFunc(all, func(r *rules.Rule) bool { return r.Name == one.Rule })
		if at < 0 {
			warn("a mode that weir ctl has set is of no rule in force", one)
			continue
		}
		stays := (rules.Modes{All: m.all}).IsShadow(all[at])
		switch want := one.Mode == override.Shadow; {
		case config != nil && !want && config.Rule(one.Rule).Shadow:
			warn("a rule stays a shadow: its limit stands alone, or that of another rule does, and a request may match both", one, "other", config.Conflict(all[at]).Name)
		case want != stays:
			warn("the mode of a rule is that of weir ctl, which overrides its file", one)
		}
	}
	m.said = told
}

// set changes the mode of a rule. It keeps none that files and flags say anyway.
func (m *modes) set(ctx context.Context, one override.ModeOf) (before override.Mode, err error) {
	r, err := m.find(one)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	is := m.read().IsShadow(r)
	if own := (rules.Modes{All: m.all}).IsShadow(r); own == (one.Mode == override.Shadow) {
		one.Mode = override.Auto
	}
	m.mu.Unlock()
	if _, err := m.table.SetMode(ctx, one); err != nil {
		return "", err
	}
	before = override.Enforced
	if is {
		before = override.Shadow
	}
	return before, nil
}

// find returns the rule of a mode, or says why it cannot have it.
func (m *modes) find(one override.ModeOf) (*rules.Rule, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.rules(), func(r *rules.Rule) bool { return r.Name == one.Rule })
	if at < 0 {
		return nil, errNoMode("no rule in force has that name")
	}
	r := m.rules()[at]
	switch {
	case r.Pool:
		return nil, errNoMode("it is only asked in place of rules that name it in otherwise, and a shadow asks none: name those rules")
	case m.config != nil && !m.config.Switches(r):
		return nil, errNoMode("a control plane or a file of another program has it, and says itself whether it is a shadow")
	case r.Unlimited:
		return nil, errNoMode("it exempts requests, and refuses none")
	case r.Budget != "":
		return nil, errNoMode(fmt.Sprintf("it counts in the budget of rule %q: name that one", r.Budget))
	case one.Mode == override.Enforced && m.config != nil:
		_, config := m.inForce()
		if other := config.Conflict(config.Rule(r.Name)); other != nil {
			return nil, errNoMode(fmt.Sprintf("a request may match the rule %q, too, and one of the two holds a limit that stands alone; let match divide them", other.Name))
		}
	}
	return r, nil
}

// errNoMode says why a rule cannot have a mode.
type errNoMode string

func (e errNoMode) Error() string { return string(e) }

// start has the rules in force, now and after each change.
func (m *modes) start(d *decide.Desk, turned func(rule string, shadow bool), use func(*rules.Config)) {
	m.turned = turned
	m.use = func(named []*weir.Rule, config *rules.Config) {
		d.Use(named, config)
		if config != nil {
			use(config)
		}
	}
}

// shadows returns how many rules are shadows.
func (m *modes) shadows() int { return len(*m.are.Load()) }

// isShadow reports whether a rule is a shadow.
func (m *modes) isShadow(rule string) bool { return (*m.are.Load())[rule] }

// note notes which rules are shadows.
func (m *modes) note(named []*weir.Rule, config *rules.Config) {
	are := map[string]bool{}
	for _, r := range named {
		if rules.InPlace(r) != nil {
			are[r.Name()] = true
		}
	}
	if config != nil {
		for _, r := range config.Rules {
			if r.Shadow {
				are[r.Name] = true
			}
		}
	}
	m.are.Store(&are)
}
