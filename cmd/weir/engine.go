package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit"
)

// memoryEngine is the name of the engine that needs no server.
const memoryEngine = "memory"

// engineHints list the values of --engine.
var engineHints = []string{
	"an engine is memory, or the URL of a Redis server: redis://127.0.0.1:6379",
	"a cluster: redis-cluster://HOST:PORT,…; behind Sentinel: redis-sentinel://HOST:PORT,…/MASTER; with TLS: rediss://…; a socket: unix:///PATH",
	"options follow a question mark, like ?password_file=FILE or ?prefix=shop; docs/redis.md lists them",
}

// chosenEngine is the engine of --engine.
type chosenEngine struct {
	weir.Engine
	memory   *weir.Memory // the same engine, if it is the memory engine
	close    func()
	patience time.Duration // the bound on the time of a decision
}

// redisPatience bounds the time of a decision. A healthy server needs a thousandth of it, and the client of the
// daemon usually has a client waiting.
const redisPatience = 2 * time.Second

// openEngine returns the engine of --engine. The engine is ready to decide by the rules.
func (o *serveOptions) openEngine(ctx context.Context, log *slog.Logger, rules []*weir.Rule) (*chosenEngine, error) {
	if o.engine == memoryEngine {
		memory, err := o.state.load()
		if err != nil {
			return nil, err
		}
		return &chosenEngine{Engine: memory, memory: memory, close: func() {}}, checkRules(memory, rules)
	}
	if _, _, err := redislimit.ParseURL(o.engine); err != nil {
		return nil, usageWithHint(fmt.Errorf("--engine: %w", err), engineHints...)
	}
	shared, err := o.awaitRedis(ctx, log, rules)
	if err != nil {
		return nil, err
	}
	if redislimit.HoldsPassword(o.engine) {
		log.Warn("every user of this machine can read the password in --engine; leave it out and add ?password_file=FILE or ?password_env=NAME to the URL")
	}
	logWarnings(ctx, shared, log)
	return &chosenEngine{Engine: shared, close: shared.Close, patience: redisPatience}, nil
}

// checkRules returns an error for a rule that the engine cannot hold.
func checkRules(engine weir.Engine, rules []*weir.Rule) error {
	for _, rule := range rules {
		if err := engine.Check(rule); err != nil {
			return usageWithHint(fmt.Errorf("serve: --rule %s: %s", printable(rule.Name()), plain(err)), limitHints(err, nil)...)
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
