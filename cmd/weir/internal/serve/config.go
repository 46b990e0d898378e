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
	"github.com/weirflow/weir/cmd/weir/internal/desk"
	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// configOptions are the rules of the daemon: of flags, or of files that it reads again when they change.
type configOptions struct {
	paths []string
	flags []string // --rule
}

// inUse are the rules at the start.
type inUse struct {
	named []*weir.Rule
	set   *rules.Set // nil without files
}

func (o *configOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.flags, "rule", nil, "decide by this rule, `NAME=LIMIT`; may be repeated")
	flags.StringArrayVar(&o.paths, "config", nil, "read rules from `FILE`, or from all files of a directory; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("rule", completeRule)
}

// load reads the rules of the flags or of the files.
func (o *configOptions) load(parsing rules.Options) (*inUse, error) {
	if len(o.paths) == 0 {
		named, err := parseRules(o.flags)
		return &inUse{named: named}, err
	}
	if len(o.flags) > 0 {
		return nil, cli.Misusef("put the rules of --rule into the file", "--config with --rule: rules are in files or in flags")
	}
	set, err := rules.Open(parsing, o.paths...)
	switch {
	case err != nil && parsing.Parse != nil:
		return nil, rules.RefusedForeign("serve: --compat envoyproxy: --config", err)
	case err != nil:
		return nil, rules.Refused("serve: --config", err)
	}
	return &inUse{set.Config().Named(), set}, nil
}

// warn logs what the files say that has no effect.
func (u *inUse) warn(log *slog.Logger) {
	if u.set == nil {
		return
	}
	for _, w := range u.set.Config().Warnings {
		log.Warn("a part of the rules files has no effect as it stands", "file", w.File, "line", w.Line, "where", w.Where, "problem", w.Text)
	}
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

// keepUp uses changed files until the context ends.
func (u *inUse) keepUp(ctx context.Context, to *api.API, d *desk.Desk, seen *metrics.Metrics, watching *live.Live, also func(*rules.Config), again <-chan os.Signal, log *slog.Logger) {
	u.set.Watch(ctx, again, func(r rules.Reload) {
		if r.Now == nil {
			log.Error("changes of rules files may go unnoticed", "err", r.Err)
			return
		}
		to.Reloaded(r.Err)
		watching.Reloaded(problemsOf(r.Err))
		if r.Err != nil {
			seen.Reloaded(nil, nil, r.Err)
			log.Error("the rules in force stay: rules files have problems", "err", r.Err)
			notifyReload(log, "the rules in force stay: rules files have problems")
			return
		}
		logChanges(log, rules.Diff(r.Before, r.Now))
		d.Use(r.Now.Named(), r.Now)
		also(r.Now)
		seen.Reloaded(r.Before, r.Now, nil)
		log.Info("rules reloaded", "rules", len(r.Now.Rules))
		u.warn(log)
		notifyReload(log, fmt.Sprintf("%d rules", len(r.Now.Rules)))
		for _, field := range r.Restart {
			log.Warn("a field of the rules files takes effect at the next start", "field", field)
		}
	})
}
