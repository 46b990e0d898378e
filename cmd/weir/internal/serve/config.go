package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// configOptions are the rules of the daemon: of flags, or of files that it reads again when they change.
type configOptions struct {
	paths []string
	flags []string // --rule
}

// inUse are the rules at the start.
type inUse struct {
	named  []*weir.Rule
	set    *rulefiles.Set // nil without files
	pushed *pushed        // nil without a control plane
}

func (o *configOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.flags, "rule", nil, "decide by this rule, `NAME=LIMIT`; may be repeated")
	flags.StringArrayVar(&o.paths, "config", nil, "read rules from `FILE`, or from all files of a directory; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("rule", completeRule)
}

// load reads the rules of the flags or of the files.
func (o *configOptions) load(parsing rulefiles.Options) (*inUse, error) {
	if len(o.paths) == 0 {
		named, err := parseRules(o.flags)
		return &inUse{named: named}, err
	}
	if len(o.flags) > 0 {
		return nil, cli.Misusef("put the rules of --rule into the file", "--config with --rule: rules are in files or in flags")
	}
	set, err := rulefiles.Open(parsing, o.paths...)
	switch {
	case err != nil && parsing.Parse != nil:
		return nil, rulefiles.RefusedForeign("serve: --compat envoyproxy: --config", err)
	case err != nil:
		return nil, rulefiles.Refused("serve: --config", err)
	}
	if r := set.Config().Replacing(); r != nil {
		return nil, cli.Misusef("name the file with --overlay, beside a control plane", "--config: the rule %q of %s replaces a limit that a control plane pushes", r.Name, cli.Printable(r.File))
	}
	return &inUse{named: set.Config().Named(), set: set}, nil
}

// warn logs what the files say that has no effect.
func (u *inUse) warn(log *slog.Logger) {
	var all []said
	for _, w := range u.warnings() {
		all = append(all, said{fmt.Sprintf("%s:%d", w.File, w.Line), w.Text, []any{"file", w.File, "line", w.Line, "where", w.Where, "problem", w.Text}})
	}
	sayOnce(log, "a part of the rules files has no effect as it stands", all)
}

// warnings returns what the files say that has no effect.
func (u *inUse) warnings() rules.Problems {
	switch {
	case u.set == nil:
		return nil
	case u.pushed != nil && u.pushed.over != nil:
		return u.pushed.over.Warnings()
	}
	return u.set.Warnings()
}

// config returns the rules in files, or nil.
func (u *inUse) config() *rules.Config {
	if u.set == nil {
		return nil
	}
	return u.set.Config()
}

// limits returns all limits that the engine must hold.
func (u *inUse) limits() []*weir.Rule {
	if u.set == nil {
		return u.named
	}
	return u.set.Config().Limits()
}

// fill takes what the files say of the daemon for the flags that are not set.
func (o *options) fill(isSet func(flag string) bool, files *rules.Config) error {
	if files == nil {
		return nil // check has looked at the flags
	}
	for flag, value := range files.Listen {
		if !isSet(flag) {
			if err := o.set(flag, value); err != nil {
				return err
			}
		}
	}
	for flag, value := range files.Engine {
		if !isSet(flag) {
			if err := o.set(flag, value); err != nil {
				return err
			}
		}
	}
	if o.engine.shared() {
		o.engine.layers.Files = files.Policies()
	}
	if err := o.checkPorts(isSet); err != nil {
		return err
	}
	return o.checkEngine(isSet)
}

// news learn of rules that come into force.
type news struct {
	api      *api.API
	modes    *modes
	seen     *metrics.Metrics
	watching *live.Live
	also     func(*rules.Config)
	log      *slog.Logger
}

// keepUp uses changed files until the context ends.
func (u *inUse) keepUp(ctx context.Context, again <-chan os.Signal, tell *news) {
	u.set.Watch(ctx, again, func(r rulefiles.Reload) {
		if r.Now == nil {
			tell.log.Error("changes of rules files may go unnoticed", "err", r.Err)
			return
		}
		tell.use(r)
		if r.Err != nil {
			tell.log.Error("the rules in force stay: rules files have problems", "err", r.Err)
			notifyReload(tell.log, "the rules in force stay: rules files have problems")
			return
		}
		tell.log.Info("rules reloaded", "rules", len(r.Now.Rules))
		u.warn(tell.log)
		notifyReload(tell.log, fmt.Sprintf("%d rules", len(r.Now.Rules)))
		for _, field := range r.Restart {
			tell.log.Warn("a field of the rules files takes effect at the next start", "field", field)
		}
	})
}

// use puts the rules of a reload in force, if they differ from those before, and tells everyone of its problems.
func (n *news) use(r rulefiles.Reload) {
	n.api.Reloaded(r.Err)
	n.watching.Reloaded(problemsOf(r.Err))
	if r.Err != nil {
		n.seen.Reloaded(nil, nil, r.Err)
	}
	if r.Before == r.Now {
		return
	}
	logChanges(n.log, rules.Diff(r.Before, r.Now))
	n.also(n.modes.reload(r.Now))
	if r.Err == nil {
		n.seen.Reloaded(r.Before, r.Now, nil)
	}
}
