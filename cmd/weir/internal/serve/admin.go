package serve

import (
	"context"
	"log/slog"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/admin"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// overrides are the limits that weir ctl puts in force for single keys.
type overrides struct {
	*override.Table
	close func()
}

// overridesEnd is the end of the name of their file, which begins with that of the states.
const overridesEnd = ".overrides"

// overrides opens the table of overrides beside the states.
func (o *options) overrides(ctx context.Context, log *slog.Logger, engine *chosenEngine) (*overrides, error) {
	if o.engine.shared() {
		table, end, err := o.sharedOverrides(ctx, log, engine)
		if err != nil {
			return nil, cli.Fail(err, cli.EngineHints...)
		}
		ctx, stop := context.WithCancel(ctx)
		go table.Watch(ctx)
		return &overrides{table, func() { stop(); end() }}, nil
	}
	path := o.state.path
	if path != "" {
		path += overridesEnd
	}
	table, err := override.OpenFile(path, log)
	if err != nil {
		return nil, cli.Fail(err, "nothing was changed; to start without overrides, move the file away; a file that you have edited is read without its first line, the checksum")
	}
	return &overrides{table, func() {}}, nil
}

// logIdle logs the overrides that change no decision of the rules in force, such as those of renamed rules.
func (o *overrides) logIdle(named []*weir.Rule, config *rules.Config) {
	o.Idle(func(e *override.Entry) string { return admin.Idle(e, named, config) })
}

// sharedOverrides opens the table of overrides of all daemons.
func (o *options) sharedOverrides(ctx context.Context, log *slog.Logger, engine *chosenEngine) (table *override.Table, end func(), err error) {
	if engine.database == nil {
		return override.OpenRedis(o.engine.where, log)
	}
	ctx, cancel := context.WithTimeout(ctx, cli.RedisPatience)
	defer cancel()
	table, err = override.OpenDatabase(ctx, engine.database.Store(), log)
	if unreachable(err) {
		log.Warn("overrides are not in force yet", "err", err)
		err = nil
	}
	return table, func() {}, err
}

// admin returns what weir ctl asks for.
func (o *options) admin(decides *decide.Desk, d *started, watching *live.Live) admin.Options {
	options := admin.Options{Engine: d.engine.Engine, Overrides: d.changed.Table, Fleeting: d.engine.memory != nil && o.state.path == "", Rules: decides.Rules, Drain: d.drain, Policy: d.engine.answered,
		Warnings: d.used.warnings, Mode: d.modes.set, IsShadow: d.modes.isShadow, Origin: d.used.pushed.origin, CheckKey: o.gateway.key != "", Log: d.log, Live: watching}
	if o.state.path != "" {
		options.Save = func() error { return o.state.save(d.engine.memory) }
	}
	return options
}
