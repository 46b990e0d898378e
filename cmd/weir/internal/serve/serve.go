package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// options are the flags of weir serve.
type options struct {
	http        string
	hosts       []string
	connections int
	engine      string
	engineWait  time.Duration
	rules       []string
	drain       time.Duration
	grace       time.Duration
	state       stateFile
	record      recordOptions
	gateway     gatewayOptions
	wait        waitOptions
}

func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:               "serve",
		Short:             "Answer over HTTP whether a request may go ahead",
		Long:              help,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return o.runUntilSignal(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.http, "http", "127.0.0.1:8080", "listen on `ADDR`, a HOST:PORT; port 0 takes any free port")
	flags.StringArrayVar(&o.hosts, "host", nil, "also answer requests for the host `NAME`; may be repeated")
	flags.IntVar(&o.connections, "max-connections", defaultConnections, "serve at most `N` connections at a time")
	flags.StringVar(&o.engine, "engine", memoryEngine, "keep the state in `WHERE`: memory, or the URL of a Redis server like redis://127.0.0.1:6379")
	flags.DurationVar(&o.engineWait, "engine-wait", defaultEngineWait, "at the start, wait this long for a Redis that is absent or refuses writes")
	flags.StringArrayVar(&o.rules, "rule", nil, "decide by this rule, `NAME=LIMIT`; may be repeated")
	flags.IntVar(&o.state.keys, "max-keys", weir.DefaultMaxKeys, "keep at most `N` keys of each limit in memory; further keys share limits")
	flags.DurationVar(&o.drain, "drain", 0, "after a stop signal, serve this much longer while /readyz is 503, so that load balancers turn away")
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "at a stop, give requests in flight this long to finish")
	flags.StringVar(&o.state.path, "state", "", "load the state from `FILE` at the start, and save it there")
	flags.DurationVar(&o.state.every, "state-every", 30*time.Second, "save the state this often and at the stop; 0 saves only at the stop")
	o.gateway.addFlags(cmd)
	o.wait.addFlags(cmd)
	cli.Offer(cmd, "http", "127.0.0.1:8080")
	cli.Offer(cmd, "engine", memoryEngine, "redis://127.0.0.1:6379")
	cli.Offer(cmd, "host")
	o.record.flags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("rule", completeRule)
}

// runUntilSignal serves until a signal ends it, and prints its error behind the log.
func (o *options) runUntilSignal(ctx context.Context, out, errs io.Writer) error {
	// A closed log or terminal must not end the daemon before it has saved its state.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	log := newLogBuffer(errs)
	defer log.end(logPatience)
	if err := o.run(ctx, out, log); err != nil {
		return cli.Exit(cli.Report(log, err))
	}
	return nil
}

// check refuses flags that are out of bounds or exclude each other.
func (o *options) check(isSet func(flag string) bool) error {
	wrong := func(hint, format string, values ...any) error {
		return cli.Misuse(fmt.Errorf(format, values...), hint)
	}
	switch {
	case o.drain < 0 || o.grace < 0:
		return wrong("use a duration of 0 or more, like 500ms or 10s", "--drain %v, --grace %v: a negative duration", o.drain, o.grace)
	case o.state.every < 0:
		return wrong("use a duration of 0 or more, like 10s or 5m", "--state-every %v: a negative duration", o.state.every)
	case o.state.keys < 1:
		return wrong("a key takes up to 28 bytes; the default is "+strconv.Itoa(weir.DefaultMaxKeys), "--max-keys %d: not a number of keys", o.state.keys)
	case o.connections < 1:
		return wrong("a connection takes about 20 KiB; the default is "+strconv.Itoa(defaultConnections), "--max-connections %d: not a number of connections", o.connections)
	case o.engineWait < 0:
		return wrong("use a duration of 0 or more, like 10s or 1m", "--engine-wait %v: a negative duration", o.engineWait)
	case o.engine == memoryEngine && isSet("engine-wait"):
		return wrong("leave --engine-wait out; it is for Redis", "--engine-wait without --engine: the memory engine needs no wait")
	case o.engine != memoryEngine && o.state.path != "":
		return wrong("leave --state out; docs/redis.md says what Redis keeps across a restart", "--state with --engine: the state is in Redis")
	case o.engine != memoryEngine && isSet("max-keys"):
		return wrong("leave --max-keys out; docs/redis.md says how to bound the memory of Redis", "--max-keys with --engine: the keys are in Redis")
	case o.state.path == "" && isSet("state"):
		return wrong("name the file: --state weir.state", "--state '': not a file name")
	case o.state.path == "" && isSet("state-every"):
		return wrong("name the file: --state weir.state", "--state-every without --state")
	}
	if err := o.wait.check(o.connections); err != nil {
		return err
	}
	return o.record.check(isSet)
}

// run serves until the context ends.
func (o *options) run(ctx context.Context, out, errs io.Writer) error {
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
	check, err := o.gateway.options(log)
	if err != nil {
		return err
	}
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
	defer func() { _ = listener.Close() }() // for the returns before serve
	serves, err := o.servedHosts(named, listener.Addr())
	if err != nil {
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
	warnOfStrangers(log, listener.Addr())
	asked := o.state.saveSignals() // before the announcement names this process
	if err := announce(out, log, listener.Addr(), rules); err != nil {
		return cli.Fail(fmt.Errorf("serve: standard output: %w", err), "serve prints where it listens; keep its output open")
	}
	s := server{
		api:   api.New(api.Options{Serves: serves, Engine: engine.Engine, Rules: rules, Log: log, Patience: engine.patience, Reason: engineReason, Check: check, Asked: recorded, Wait: o.wait.within(o.connections)}),
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

// serveAndKeep serves and saves the state at intervals. It saves once more after the server has ended.
func (o *options) serveAndKeep(ctx context.Context, s *server, listener net.Listener, engine *weir.Memory, asked <-chan os.Signal) error {
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

// logPatience bounds the delay that a stalled reader of the log adds to the start and to the end.
const logPatience = time.Second
