package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/engineflags"
	"github.com/weirflow/weir/cmd/weir/internal/notice"
	"github.com/weirflow/weir/cmd/weir/internal/peers"
	"github.com/weirflow/weir/cmd/weir/internal/sqlengine"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// memoryEngine is the name of the engine that needs no server.
const memoryEngine = "memory"

// engineOptions are the flags of the engine.
type engineOptions struct {
	where    string
	wait     time.Duration
	layers   cli.Layers
	prefetch bool

	observe func(context.Context, redislimit.ScriptCall) // of a shared engine
}

func (o *engineOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.where, "engine", memoryEngine, "keep the state in `WHERE`: memory, or the URL of a Redis server like redis://127.0.0.1:6379 or of a database like postgres://HOST/DB")
	flags.DurationVar(&o.wait, "engine-wait", defaultEngineWait, "at the start, wait this long for a server that is absent or refuses writes; a policy of --on-failure then starts without one")
	cli.Offer(cmd, "engine", memoryEngine, "redis://127.0.0.1:6379", "postgres://127.0.0.1/weir", "sqlite:weir.db")
	o.layers.AddFlags(cmd, "daemons")
	o.layers.CountPeers(cmd)
	flags.BoolVar(&o.prefetch, "prefetch", false, "take blocks of permits of busy keys ahead, and decide from them")
}

// kind names the engine without its address.
func (o *engineOptions) kind() string {
	switch {
	case !o.shared():
		return memoryEngine
	case sqlengine.Names(o.where):
		return "sql"
	}
	return "redis"
}

// shared reports whether other daemons may use the engine.
func (o *engineOptions) shared() bool { return o.where != memoryEngine }

func (o *engineOptions) check(isSet func(flag string) bool) error {
	switch {
	case o.wait < 0:
		return cli.Misusef("use a duration of 0 or more, like 10s or 1m", "--engine-wait %v: a negative duration", o.wait)
	case !o.shared() && isSet("engine-wait"):
		return cli.Misusef("leave --engine-wait out; it is for a server", "--engine-wait without --engine: the memory engine needs no wait")
	}
	for _, flag := range slices.Concat(cli.LayerFlags, []string{"prefetch"}) {
		if !o.shared() && isSet(flag) {
			return cli.Misusef("leave --"+flag+" out; it is for a server", "--%s without --engine: the memory engine is never away", flag)
		}
	}
	if o.layers.AutoPeers() && sqlengine.Names(o.where) {
		return cli.Misusef("say how many daemons share it: --peers 3", "--peers auto with a database as the engine: only Redis counts its daemons")
	}
	return o.layers.Check()
}

// chosenEngine is the engine of --engine.
type chosenEngine struct {
	weir.Engine
	memory   *weir.Memory      // the same engine, if it is the memory engine
	database *sqlengine.Engine // the same engine without layers, if it is a database
	guard    *layer.Guarded    // around a shared engine
	peers    func() int        // that share a limit while the engine is away
	counter  *peers.Counter    // of the daemons on Redis
	health   engineHealth      // of a shared engine
	close    func()
	patience time.Duration // the bound on the time of a decision
	beside   weir.Engine   // the same engine, for shadows and candidates
	chains   weir.Engine   // the same engine, for calls with requests in place of others
}

// answered returns how often the policy has answered in place of the engine, and why the engine does not decide, or "".
func (e *chosenEngine) answered() (times uint64, away string) {
	if e.guard != nil {
		s := e.guard.Stats()
		times = s.Denied + s.Allowed + s.Local
	}
	return times, e.health.fails()
}

// wrap puts functions around the engine that decides. Only tests change it.
var wrap = func(e weir.Engine) weir.Engine { return e }

// open returns the engine of --engine, otherwise one with the state. The engine is ready to decide by the rules.
func (o *engineOptions) open(ctx context.Context, log *slog.Logger, rules []*weir.Rule, state *stateFile) (*chosenEngine, error) {
	if !o.shared() {
		memory, err := state.load()
		if err != nil {
			return nil, err
		}
		return &chosenEngine{Engine: wrap(memory), memory: memory, close: func() {}}, checkRules(memory, rules)
	}
	if err := engineflags.CheckURL(o.where); err != nil {
		return nil, cli.Misuse(fmt.Errorf("--engine: %w", err), cli.EngineHints...)
	}
	guard, err := o.layers.Guard(rules)
	if err != nil {
		return nil, err
	}
	server, err := o.await(ctx, log, rules)
	if err != nil {
		return nil, err
	}
	warnOfPassword(o.where, server, log)
	chosen := &chosenEngine{patience: cli.RedisPatience}
	if err := o.count(ctx, server, chosen, &guard, log); err != nil {
		server.Close()
		return nil, err
	}
	guard.Logger, guard.OnChange = log, chosen.health.changed
	guard.Rules[decide.SettledRule], guard.Rules[notice.MarkRule] = layer.Deny, layer.Deny
	if o.layers.Given() {
		guard.Rules[decide.HereRule] = layer.Local
		if guard.PeersNow == nil {
			guard.Peers = max(guard.Peers, 1)
		}
	}
	engine, end, err := layer.ForNetwork(o.counted(server), layer.NetworkOptions{Guard: guard, Prefetch: o.prefetch})
	if err != nil {
		chosen.leave()
		server.Close()
		return nil, err
	}
	chosen.Engine, chosen.close = wrap(engine), func() { chosen.leave(); end(); server.Close() }
	chosen.database, _ = server.(*sqlengine.Engine)
	chosen.guard, _ = weir.Find[*layer.Guarded](engine)
	return chosen, nil
}

// counted returns an engine that reports its calls. Redis reports its own ones; each may hold the calls of many callers.
func (o *engineOptions) counted(e weir.Engine) weir.Engine {
	if _, reports := e.(*redislimit.Engine); reports || o.observe == nil {
		return e
	}
	return weir.Wrap(e, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		began := time.Now()
		a, err := next(ctx, call)
		seen := redislimit.ScriptCall{Began: began, Took: time.Since(began)}
		if sqlengine.Failed(err) || errors.Is(err, context.DeadlineExceeded) {
			seen.Outcome = "failed"
		}
		o.observe(ctx, seen)
		return a, err
	})
}

// sharedEngine is an engine of several processes.
type sharedEngine interface {
	weir.Engine
	Close()
}

// warnOfPassword logs passwords that others can read.
func warnOfPassword(where string, shared sharedEngine, log *slog.Logger) {
	_, ok := shared.(*redislimit.Engine)
	switch {
	case !ok && sqlengine.HasPassword(where):
		log.Warn("every user of this machine can read the password in --engine; leave it out, and use PGPASSFILE, PGPASSWORD or the variable WEIR_ENGINE")
	case ok && redislimit.HasPassword(where):
		log.Warn("every user of this machine can read the password in --engine; leave it out and add ?password_file=FILE or ?password_env=NAME to the URL")
	}
}

// checkRules returns an error for a rule that the engine cannot hold.
func checkRules(engine weir.Engine, rules []*weir.Rule) error {
	for _, rule := range rules {
		if err := engine.Check(rule); err != nil {
			return cli.Misuse(fmt.Errorf("serve: --rule %s: %s", cli.Printable(rule.Name()), cli.Plain(err)), cli.LimitHints(err, nil)...)
		}
	}
	return nil
}

// warningsTimeout bounds the optional checks at the start.
const warningsTimeout = 5 * time.Second

// logWarnings logs settings of the servers that can make the engine admit more than the limits.
func logWarnings(ctx context.Context, engine *redislimit.Engine, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, warningsTimeout)
	defer cancel()
	warnings, err := engine.Warnings(ctx)
	for _, warning := range warnings {
		log.Warn(warning)
	}
	if err != nil {
		log.Warn("cannot tell whether the servers evict keys", "error", err)
	}
}

// defaultEngineWait is longer than a start of a server or a failover takes.
const defaultEngineWait = 10 * time.Second

// engineRetry is the pause between two attempts.
const engineRetry = 250 * time.Millisecond

// await opens the engine of --engine. It retries for up to --engine-wait while the server is absent or refuses writes.
func (o *engineOptions) await(ctx context.Context, log *slog.Logger, rules []*weir.Rule) (sharedEngine, error) {
	began := time.Now()
	for logged := false; ; logged = true {
		engine, err := o.dial(ctx, log, rules, false)
		if err == nil {
			if redis, ok := engine.(*redislimit.Engine); ok {
				logWarnings(ctx, redis, log)
			}
			return engine, nil
		}
		hint, again := engineFailure(err)
		switch {
		case hint == "": // a retry cannot help
			return nil, err
		case unreachable(err) && o.layers.Given() && time.Since(began) >= o.wait:
			log.Warn("the engine is unreachable; serving by --on-failure until it answers", "error", err)
			if engine, err = o.dial(ctx, log, rules, true); err != nil {
				return nil, cli.Fail(fmt.Errorf("serve: --engine: %w", err), hint)
			}
			return engine, nil
		case !again || o.wait == 0:
			return nil, cli.Fail(fmt.Errorf("serve: --engine: %w", err), hint)
		case time.Since(began) >= o.wait:
			return nil, cli.Fail(fmt.Errorf("serve: --engine: not ready within %v: %w", o.wait, err), hint, "wait longer with --engine-wait")
		case !logged:
			log.Warn("the engine is not ready; trying again", "at_most", o.wait, "error", err)
		}
		select {
		case <-time.After(engineRetry):
		case <-ctx.Done():
			return nil, cli.Fail(fmt.Errorf("serve: --engine: stopped while waiting for the server: %w", err), "nothing was served")
		}
	}
}

// unreachable reports whether no server has answered, at an address that is known.
func unreachable(err error) bool {
	if failed, ok := sqlengine.Opening(err); ok {
		return failed.Unreachable
	}
	failed, redis := errors.AsType[*redislimit.Error](err)
	name, unknown := errors.AsType[*net.DNSError](err)
	return redis && (failed.Reason == redislimit.Lost || failed.Reason == redislimit.Loading) && !(unknown && name.IsNotFound)
}

// refuses reports whether a server has answered what no wait can mend, such as that the password is wrong.
func refuses(err error) bool {
	if failed, ok := sqlengine.Opening(err); ok {
		return !failed.Unreachable
	}
	failed, redis := errors.AsType[*redislimit.Error](err)
	return redis && (failed.Reason == redislimit.Denied || failed.Reason == redislimit.TooOld)
}

// engineFailure returns the hint for a failure of a server, and whether it may pass.
func engineFailure(err error) (hint string, again bool) {
	if failed, ok := errors.AsType[*redislimit.Error](err); ok {
		return cli.EngineHint(failed.Reason), !refuses(err)
	}
	if sqlengine.Failed(err) {
		return sqlengine.FailureHint, true
	}
	if errors.Is(err, fs.ErrNotExist) {
		return sqlengine.NoFolderHint, false
	}
	return "", false
}

// dial opens the engine and makes one decision. later allows for a server that does not answer yet.
func (o *engineOptions) dial(ctx context.Context, log *slog.Logger, rules []*weir.Rule, later bool) (engine sharedEngine, err error) {
	within, cancel := context.WithTimeout(ctx, cli.RedisPatience)
	defer cancel()
	if sqlengine.Names(o.where) {
		engine, err = sqlengine.Open(within, o.where, later)
	} else {
		engine, err = redislimit.Open(o.where, redislimit.Options{Logger: log, Observe: o.observe, ConnectLater: later})
	}
	if err != nil {
		return nil, err
	}
	err = checkRules(engine, rules)
	if err == nil && !later {
		err = decide.Probe(within, engine)
	}
	if err != nil {
		engine.Close()
		return nil, err
	}
	return engine, nil
}

// engineReasons describe the failures of Redis to clients, without addresses.
var engineReasons = map[redislimit.Reason]string{
	redislimit.ReadOnly:    "Redis refuses writes: it is a replica, or lacks replicas",
	redislimit.Loading:     "Redis is loading its data",
	redislimit.OutOfMemory: "Redis is out of memory",
	redislimit.Denied:      "Redis denies this user a command that the engine needs",
	redislimit.ClusterDown: "the Redis cluster has slots without a node, or slots that are moving",
	redislimit.Lost:        "the connection to Redis failed, or gave no answer in time",
}

func engineReason(err error) string {
	failed, ok := errors.AsType[*redislimit.Error](err)
	switch {
	case !ok && errors.Is(err, context.DeadlineExceeded):
		return "it did not decide in time"
	case !ok && refuses(err):
		return "the database refuses this daemon; the log says why"
	case !ok && sqlengine.Failed(err):
		return "the database could not decide, or gave no answer in time"
	case !ok:
		return "the engine could not decide"
	}
	if words, known := engineReasons[failed.Reason]; known {
		return words
	}
	return "Redis: " + string(failed.Reason)
}
