package serve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/admin"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/notice"
	"github.com/weirflow/weir/cmd/weir/internal/resp"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/layer"
)

// options are the flags of weir serve.
type options struct {
	http        string
	ports       portOptions
	hosts       []string
	connections int
	rules       configOptions
	drain       time.Duration
	grace       time.Duration
	engine      engineOptions
	state       stateFile
	record      recordOptions
	gateway     gatewayOptions
	wait        waitOptions
	live        liveOptions
	compat      compatOptions
	shadow      shadowOptions
	dynamic     bool
	log         logOptions
	traces      traceOptions
	notify      notifyOptions
	isSet       func(flag string) bool
	set         func(flag, value string) error
	flags       *pflag.FlagSet
}

// Command returns the command serve.
func Command() *cobra.Command { return command(new(options)) }

// StandIn returns the command serve in the place of envoyproxy/ratelimit: with its environment and its addresses.
func StandIn() *cobra.Command {
	o := new(options)
	cmd := command(o)
	_ = cmd.Flags().Set("compat", compatEnvoy)
	o.compat.inPlace = true
	return cmd
}

func command(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "serve",
		Short:             "Answer over HTTP whether a request may go ahead",
		Long:              help,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.prepare(cmd); err != nil {
				return cli.Exit(o.log.report(cmd.ErrOrStderr(), err))
			}
			return o.runUntilSignal(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	return cmd
}

// prepare sets and checks what the command line and the environment say.
func (o *options) prepare(cmd *cobra.Command) error {
	if err := setFromEnvironment(cmd); err != nil {
		return err
	}
	if err := o.compat.apply(cmd, &o.ports, &o.traces); err != nil {
		return err
	}
	o.isSet, o.set, o.flags = cmd.Flags().Changed, cmd.Flags().Set, cmd.Flags()
	return o.check(o.isSet)
}

func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.http, "http", "127.0.0.1:8080", "listen on `ADDR`, a HOST:PORT or unix:PATH; port 0 takes any free port")
	flags.StringArrayVar(&o.hosts, "host", nil, "also answer requests for the host `NAME`; may be repeated")
	flags.IntVar(&o.connections, "max-connections", defaultConnections, "serve at most `N` connections at a time")
	flags.DurationVar(&o.drain, "drain", 0, "after a stop signal, serve this much longer while /readyz is 503, so that load balancers turn away")
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "at a stop, give requests in flight this long to finish")
	flags.BoolVar(&o.dynamic, "dynamic", false, "let requests name the limit of a rule")
	cli.Offer(cmd, "http", "127.0.0.1:8080")
	cli.Offer(cmd, "host")
	for _, add := range []func(*cobra.Command){o.ports.addFlags, o.engine.addFlags, o.state.addFlags, o.record.addFlags, o.gateway.addFlags, o.wait.addFlags, o.live.addFlags, o.rules.addFlags, o.shadow.addFlags, o.compat.addFlags, o.log.addFlags, o.traces.addFlags, o.notify.addFlags} {
		add(cmd)
	}
}

// runUntilSignal serves until a signal ends it, and prints its error behind the log.
func (o *options) runUntilSignal(ctx context.Context, out, errs io.Writer) error {
	// A closed log or terminal must not end the daemon before it has saved its state.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	log := newLog(errs, &o.log)
	defer log.end(logPatience)
	if err := o.run(ctx, out, log); err != nil {
		return cli.Exit(o.log.report(log, err))
	}
	return nil
}

// check refuses flags that are out of bounds or exclude each other.
func (o *options) check(isSet func(flag string) bool) error {
	switch {
	case o.drain < 0 || o.grace < 0:
		return cli.Misusef("use a duration of 0 or more, like 500ms or 10s", "--drain %v, --grace %v: a negative duration", o.drain, o.grace)
	case o.connections < 1:
		return cli.Misusef("a connection takes about 20 KiB; the default is "+strconv.Itoa(defaultConnections), "--max-connections %d: not a number of connections", o.connections)
	}
	for _, err := range []error{o.shadow.check(&o.compat), o.wait.check(o.connections), o.live.check(), o.record.check(isSet), o.log.check(), o.traces.check(), o.notify.check()} {
		if err != nil {
			return err
		}
	}
	if len(o.rules.paths) > 0 || o.compat.plane != nil { // files may say more
		return nil
	}
	if err := o.checkPorts(isSet); err != nil {
		return err
	}
	return o.checkEngine(isSet)
}

// checkPorts checks the flags of ports.
func (o *options) checkPorts(isSet func(flag string) bool) error {
	if err := o.ports.checkFiles(); err != nil {
		return err
	}
	return o.ports.envoy.check(isSet, len(o.rules.paths) > 0 || o.compat.plane != nil)
}

// checkEngine checks the flags that depend on the engine. Rules files may name that, so with them it has to wait.
func (o *options) checkEngine(isSet func(flag string) bool) error {
	if err := o.engine.check(isSet); err != nil {
		return err
	}
	return o.state.check(isSet, o.engine.shared(), o.compat.plane != nil)
}

// run opens what the daemon needs, the listener last, and serves until the context ends.
func (o *options) run(ctx context.Context, out, errs io.Writer) error {
	ctx, drain := context.WithCancel(ctx)
	defer drain()
	parsing, err := o.compat.parsing(o.engine.where)
	if err != nil {
		return err
	}
	used, err := o.load(parsing)
	if err != nil {
		return err
	}
	if err := o.fill(o.isSet, used.config()); err != nil {
		return err
	}
	named, err := parseHosts(o.hosts, o.http)
	if err != nil {
		return err
	}
	log := slog.New(o.log.handler(errs))
	seen := metrics.New(o.engine.kind(), log)
	o.state.log, o.engine.observe, o.ports.seen = log, seen.EngineCall, seen
	check, err := o.gateway.options(log, used.set != nil && used.config().ByAttributes())
	if err != nil {
		return err
	}
	most, err := boundConnections(o.connections, o.ports.busy(), log)
	if err != nil {
		return err
	}
	if err := o.apart(out, errs); err != nil {
		return err
	}
	kept := o.pushedFile()
	claimed := cmp.Or(kept, &o.state)
	if err := claimed.claim(ctx); err != nil {
		return err
	}
	defer claimed.release()
	used.open(kept, log)
	if err := o.ports.readFiles(); err != nil {
		return err
	}
	engine, err := o.engine.open(ctx, log, used.limits(), &o.state)
	if err != nil {
		return err
	}
	defer engine.close()
	engine.Engine = used.around(engine.Engine)
	changed, err := o.overrides(ctx, log, engine)
	if err != nil {
		return err
	}
	defer changed.close()
	notices, err := o.observe(engine, changed, seen, log)
	if err != nil {
		return err
	}
	listener, err := listen("http", o.http)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // for the returns before serve
	if err := named.check(o.hosts, o.http, o.ports.admin, listener.Addr()); err != nil {
		return err
	}
	if err := o.ports.checkReach("http", o.http, listener.Addr()); err != nil {
		return err
	}
	if err := o.state.save(engine.memory); err != nil { // fails now rather than hours later
		return err
	}
	recorded, stop, err := o.record.begin(log)
	if err != nil {
		return err
	}
	defer stop()
	if notices != nil {
		seen.Notice(notices)
	}
	defer beginNotices(notices)()
	return o.answer(ctx, out, &started{log, seen, used, named, check, most, engine, changed, listener, recorded, drain, o.shadow.modes(changed.Table, used, log)})
}

// observe puts overrides and the metrics around an engine, and returns what notices that a key nears its quota. Calls with requests in
// place of others have an entrance of their own: overrides stand in for the limits of all of them, so that a block is final, and the
// metrics see one decision.
func (o *options) observe(engine *chosenEngine, changed *overrides, seen *metrics.Metrics, log *slog.Logger) (_ *notice.Notices, err error) {
	below, around := engine.Engine, changed.Around(engine.Engine)
	if engine.Engine, err = seen.Observe(around); err != nil {
		return nil, err
	}
	chains, err := layer.Otherwise(below)
	if err != nil {
		return nil, err
	}
	if engine.chains, err = seen.ObserveChains(changed.Around(chains)); err != nil {
		return nil, err
	}
	if engine.beside, err = seen.ObserveBeside(around); err != nil {
		return nil, err
	}
	return o.notify.notices(below, o.engine.shared(), around, log)
}

// started holds what a daemon has opened before it answers.
type started struct {
	log      *slog.Logger
	seen     *metrics.Metrics
	used     *inUse
	named    hosts
	check    api.CheckOptions
	most     int
	engine   *chosenEngine
	changed  *overrides
	listener net.Listener
	recorded func([]weir.Request, bool)
	drain    func()
	modes    *modes
}

// desk returns what all ports decide by.
func (o *options) desk(d *started, watching *live.Live) *decide.Desk {
	named, config := d.modes.inForce()
	return decide.New(decide.Options{
		Engine: d.engine.Engine, Chains: d.engine.chains, Rules: named, Config: config, Beside: d.engine.beside, Shadow: o.shadow.all, Log: d.log, Fails: d.engine.health.fails, Patience: d.engine.patience,
		Recorded: d.recorded, PaidBy: d.seen.PaidBy, Judged: d.seen.Judged, Compared: d.seen.Compared, Told: d.seen.Told, Cleared: watching.Cleared, Secret: d.changed.Secret, Wait: o.wait.within(d.most),
	})
}

// answer serves until the context ends.
func (o *options) answer(ctx context.Context, out io.Writer, d *started) error {
	asked := o.state.saveSignals() // before the announcement names this process
	again := reloadSignals(d.used.readsFiles())
	s := server{log: d.log, ports: &o.ports, auth: *o.ports.auth(d.named, d.listener.Addr()), open: connections{most: d.most}, drain: o.drain, grace: o.grace}
	o.ports.keys.SealWith(d.changed.Secret)
	watching := o.newLive(ctx, d, &s)
	defer o.ports.unwatch()
	s.desk = o.desk(d, watching)
	s.unhealthy = func() string { return cmp.Or(o.compat.unhealthy(s.api, s.desk), d.used.pushed.unhealthy()) }
	o.compat.begin(d.log, d.used.config())
	o.warnOfPlace(d.log)
	d.changed.logIdle(s.desk.Rules())
	d.modes.begin()
	d.used.warn(d.log)
	o.warnOfFlags(d.log)
	o.warnOfPolicies(d.log, d.used.config())
	o.notify.warn(d.log, d.used.limits())
	envoy := o.ports.envoy.server(s.desk, &o.compat.stats, d.log)
	s.api = api.New(api.Options{Desk: s.desk, Log: d.log, Serves: auth.Serves, Who: auth.Of, Keys: d.seen.Top, Dynamic: o.dynamic, Check: d.check, Troubles: o.troubles, Waiting: d.used.pushed.waiting, Also: o.compat.paths(envoy, s.unhealthy)})
	d.modes.start(s.desk, d.seen.Top.Turned, func(config *rules.Config) {
		if envoy != nil {
			envoy.Use(config)
		}
	})
	d.changed.OnChange(func() {
		d.modes.changed()
		s.desk.Changed()
	})
	d.seen.Watch(metrics.Sources{Engine: d.engine.Engine, Desk: s.desk, Unready: s.api.Unready, Rules: d.used.set, Origin: d.used.pushed.origin, Overrides: func() int { return len(d.changed.Entries()) },
		Daemons: d.engine.daemons(), Certificates: o.ports.keys.Ends, CredentialsFail: o.ports.keys.Failing, Saved: o.savedAt(), RecordFails: o.recordFails()})
	traced, endTraces := o.traces.begin(d.seen.HTTP(s.api, s.api.Serves), s.api.Serves, d.seen, d.log)
	defer endTraces()
	s.traffic, s.calls = o.ports.inPlace(traced), o.traces.calls()
	redis := resp.Options{Desk: s.desk, Clients: d.most, Log: d.log}
	o.ports.watch = auth.Guard(auth.Watch, http.HandlerFunc(watching.Stream))
	o.ports.changes = admin.New(o.admin(s.desk, d, watching))
	o.ports.debugged = o.compat.debugHandler(d.used.config)
	var err error
	if s.also, err = o.ports.open(d.named, d.listener.Addr(), &s, redis, envoy, d.log); err != nil {
		return err
	}
	defer closePorts(s.also)
	listens := newAnnouncement(d.listener.Addr(), &o.ports, s.also, s.desk.InForce().Named())
	if err := listens.print(out, d.log, &o.log); err != nil {
		return cli.Fail(fmt.Errorf("serve: standard output: %w", err), "serve prints where it listens; keep its output open")
	}
	inherited().warn(d.log)
	notify(d.log, daemon.SdNotifyReady)
	go feedWatchdog(ctx, d.log)
	if d.engine.guard != nil {
		go d.engine.health.watch(ctx, d.engine.guard, d.log)
	}
	o.notify.warnOfModes(d.log)
	if o.ports.files != (auth.Files{}) {
		o.ports.warnOfModes(d.log)
		go o.ports.keepFiles(ctx, d.log)
	}
	o.keepRules(ctx, d, again, &news{s.api, d.modes, d.seen, watching, func(config *rules.Config) {
		o.compat.warn(d.log, config)
		o.warnOfPolicies(d.log, config)
		o.notify.warn(d.log, config.Limits())
		d.changed.logIdle(s.desk.Rules())
	}, d.log})
	return o.state.keepWhile(d.engine.memory, asked, func() error { return s.serve(ctx, d.listener) })
}

// keepRules uses changed rules until the context ends.
func (o *options) keepRules(ctx context.Context, d *started, again <-chan os.Signal, tell *news) {
	switch u := d.used; {
	case u.pushed != nil:
		go u.pushed.keepUp(ctx, d.engine.Check, again, tell)
	case u.set != nil:
		u.set.Check(d.engine.Check)
		go u.keepUp(ctx, again, tell)
	}
}
