package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
)

// defaultRule is the rule of a daemon that is given none, so that serve needs no
// flag.
const defaultRule = "default=token bucket 10/s burst 20"

// serveOptions are the flags of weir serve.
type serveOptions struct {
	http        string
	hosts       []string
	connections int
	engine      string
	engineWait  time.Duration
	rules       []string
	drain       time.Duration
	grace       time.Duration
	state       stateFile
}

func serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer over HTTP whether a key may go on",
		Long: `Serve decides over HTTP, with the states of all keys in memory or, with
--engine, in Redis, where several of these programs share them.

Without --engine it needs no file and no server. Without --rule it has one rule,
  ` + defaultRule + `
and with --rule only those given. A request that names no rule asks the one
called default. GET /openapi.json describes the requests
and answers. Of connections beyond --max-connections some are answered with 503,
all others closed.

A slot of a concurrency comes back when it is recorded with a negative cost, or
when its lease ends: after 1m unless the rule says, like: concurrency 20 lease 30s

Listening on a loopback address, it answers requests whose Host is localhost, a
loopback address or given with --host, and no others: a web page can have its
own name lead to this machine.

SIGINT or SIGTERM stops it: /readyz turns 503, and requests that have begun to
arrive are answered. A second signal stops it at once. SIGHUP does not stop it.

With --engine a Redis that is absent or takes no writes at the start is tried
again for --engine-wait. Once it has failed for 5 seconds, /readyz is 503.

With --state the budgets outlive the program. They are loaded from the file at
the start, if it exists, and go on as if the time in between had passed here;
they are saved at the stop, every --state-every, and on SIGUSR1 or SIGHUP. What was
decided after the last save is forgotten if the program is killed.`,
		Example: `  weir serve
  weir serve --http 127.0.0.1:9000
  weir serve --rule 'login=token bucket 5/m burst 5' --rule 'default=sliding window 1000/h'
  weir serve --rule 'default=60/m'
  weir serve --rule 'mail=token bucket 1/s burst 10 and fixed window 500/1d'
  weir serve --http :8080 --drain 5s
  weir serve --host limits.example.org
  weir serve --state weir.state --state-every 10s
  weir serve --engine redis://127.0.0.1:6379
  weir serve --engine 'rediss://weir@redis.example?password_file=redis.password&prefix=shop'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			// A closed log or terminal is no reason to die unsaved.
			signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // the second signal ends the process
			log := newLogBuffer(cmd.ErrOrStderr())
			defer log.end(logPatience)
			if err := o.run(ctx, cmd.OutOrStdout(), log); err != nil {
				printError(log, err)
				return &quietExit{exitCode(err)}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.http, "http", "127.0.0.1:8080", "listen on `ADDR`, a HOST:PORT; port 0 takes any free port")
	flags.StringArrayVar(&o.hosts, "host", nil, "serve requests for the host `NAME` too, besides localhost; may be repeated")
	flags.IntVar(&o.connections, "max-connections", defaultConnections, "serve `N` connections at once at most")
	flags.StringVar(&o.engine, "engine", memoryEngine, "keep the states in `WHERE`: memory, or the URL of a Redis like redis://127.0.0.1:6379")
	flags.DurationVar(&o.engineWait, "engine-wait", defaultEngineWait, "wait this long at the start for a Redis that is absent or takes no writes")
	flags.StringArrayVar(&o.rules, "rule", nil, "decide by this rule, `NAME=LIMIT`; may be repeated")
	flags.IntVar(&o.state.keys, "max-keys", weir.DefaultMaxKeys, "remember `N` keys of a limit at most, in memory; beyond it unknown keys share budgets")
	flags.DurationVar(&o.drain, "drain", 0, "go on serving this long after a stop signal, not ready, so that balancers turn away")
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "let requests in flight finish this long at a stop")
	flags.StringVar(&o.state.path, "state", "", "load the budgets from `FILE` at the start, and save them to it")
	flags.DurationVar(&o.state.every, "state-every", 30*time.Second, "save the budgets this often, besides at the stop; 0 does not")
	offer(cmd, "http", "127.0.0.1:8080")
	offer(cmd, "engine", memoryEngine, "redis://127.0.0.1:6379")
	offer(cmd, "host")
	_ = cmd.RegisterFlagCompletionFunc("rule", completeRule)
	return cmd
}

// check refuses flags out of bounds, and those that another makes void.
func (o *serveOptions) check(given func(flag string) bool) error {
	wrong := func(hint, format string, values ...any) error {
		return usageWithHint(fmt.Errorf(format, values...), hint)
	}
	switch {
	case o.drain < 0 || o.grace < 0:
		return wrong("both are 0 or longer, like 500ms or 10s", "--drain %v, --grace %v: a negative time", o.drain, o.grace)
	case o.state.every < 0:
		return wrong("it is 0 or longer, like 10s or 5m", "--state-every %v: a negative time", o.state.every)
	case o.state.keys < 1:
		return wrong("a key takes up to 28 bytes; the default is "+strconv.Itoa(weir.DefaultMaxKeys), "--max-keys %d: not a number of keys", o.state.keys)
	case o.connections < 1:
		return wrong("one takes about 20 KiB; the default is "+strconv.Itoa(defaultConnections), "--max-connections %d: not a number of connections", o.connections)
	case o.engineWait < 0:
		return wrong("it is 0 or longer, like 10s or 1m", "--engine-wait %v: a negative time", o.engineWait)
	case o.engine == memoryEngine && given("engine-wait"):
		return wrong("leave --engine-wait out; it is for Redis", "--engine-wait without --engine: memory is always there")
	case o.engine != memoryEngine && o.state.path != "":
		return wrong("leave --state out; docs/redis.md says what Redis keeps over a restart", "--state with --engine: the budgets are in Redis, not here")
	case o.engine != memoryEngine && given("max-keys"):
		return wrong("leave --max-keys out; docs/redis.md says how to bound the memory of Redis", "--max-keys with --engine: the keys are in Redis, not here")
	case o.state.path == "" && given("state"):
		return wrong("name the file: --state weir.state", "--state '': not the name of a file")
	case o.state.path == "" && given("state-every"):
		return wrong("name the file: --state weir.state", "--state-every without --state")
	}
	return nil
}

// run serves until the context ends.
func (o *serveOptions) run(ctx context.Context, out, errs io.Writer) error {
	rules, err := parseRules(o.rules)
	if err != nil {
		return err
	}
	named, err := parseHosts(o.hosts, o.http)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(errs, nil))
	o.state.log = log
	if err := o.boundConnections(log); err != nil {
		return err
	}
	if err := o.state.claim(ctx); err != nil {
		return err
	}
	defer o.state.release()
	engine, err := o.openEngine(ctx, log, rules)
	if err != nil {
		return err
	}
	defer engine.close()
	listener, err := listen(o.http)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // where serve does not come to it
	serves, err := o.servedHosts(named, listener.Addr())
	if err != nil {
		return err
	}
	if err := o.state.save(engine.memory); err != nil { // better now than after hours
		return err
	}
	asked := o.state.saveSignals() // before anyone can know whom to ask
	if err := announce(out, log, listener.Addr(), rules); err != nil {
		return errorWithHint(fmt.Errorf("serve: standard output: %w", err), "serve prints where it listens; keep its output open")
	}
	s := server{
		api:   api.New(api.Options{Serves: serves, Engine: engine.Engine, Rules: rules, Log: log, Patience: engine.patience, Reason: engineReason}),
		log:   log,
		open:  connections{most: o.connections},
		drain: o.drain,
		grace: o.grace,
	}
	if engine.memory == nil {
		go s.api.Watch(ctx)
	}
	return o.serveAndKeep(ctx, &s, listener, engine.memory, asked)
}

// serveAndKeep serves, saves the state meanwhile, and once more when nobody is
// served any longer.
func (o *serveOptions) serveAndKeep(ctx context.Context, s *server, listener net.Listener, engine *weir.Memory, asked <-chan os.Signal) error {
	if o.state.path == "" {
		return s.serve(ctx, listener)
	}
	serving, ended := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		o.state.keep(serving, engine, asked)
	}()
	err := s.serve(ctx, listener)
	ended()
	<-kept
	if unsaved := o.state.save(engine); unsaved != nil {
		return errors.Join(err, unsaved)
	}
	o.state.log.Info("state saved", "file", o.state.path)
	return err
}

// parseRules reads the rules of the flags; without any it is the default. A
// later rule of the same name replaces the one before, in its place.
func parseRules(texts []string) ([]*weir.Rule, error) {
	var rules []*weir.Rule
	if len(texts) == 0 {
		texts = []string{defaultRule}
	}
	for _, text := range texts {
		rule, err := weir.ParseRule(text)
		if err != nil {
			return nil, limitTextError("--rule", err, ruleForms)
		}
		if rule, err = withLeases(rule); err != nil {
			return nil, err
		}
		named := func(r *weir.Rule) bool { return r.Name() == rule.Name() }
		if i := slices.IndexFunc(rules, named); i >= 0 {
			rules[i] = rule
		} else {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

func listen(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, usageWithHint(fmt.Errorf("--http: %w", err), "an address reads HOST:PORT, like 127.0.0.1:8080, or :8080 for all interfaces")
	}
	listener, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errorWithHint(fmt.Errorf("serve: %s is in use by another program", address), "choose another address, or any free port: weir serve --http 127.0.0.1:0")
	case errors.Is(err, syscall.EACCES):
		return nil, errorWithHint(fmt.Errorf("serve: %s may not be listened on by this user", address), "ports below 1024 need privileges; try: weir serve --http 127.0.0.1:8080")
	}
	return nil, errorWithHint(fmt.Errorf("serve: %w", err), "an address is one of this machine, and reads HOST:PORT, like 127.0.0.1:8080, or :8080 for all interfaces")
}

// logPatience is how long a reader that stalls may delay the start, and the end.
const logPatience = time.Second
