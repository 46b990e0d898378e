package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/redislimit"
)

// defaultEngineWait is longer than a start of Redis or a failover takes.
const defaultEngineWait = 10 * time.Second

// engineRetry is the pause between two attempts.
const engineRetry = 250 * time.Millisecond

// awaitRedis opens the Redis of --engine. It retries for up to --engine-wait while Redis is absent or refuses writes.
func (o *serveOptions) awaitRedis(ctx context.Context, log *slog.Logger, rules []*weir.Rule) (*redislimit.Engine, error) {
	began := time.Now()
	for logged := false; ; logged = true {
		engine, err := o.tryRedis(ctx, log, rules)
		if err == nil {
			return engine, nil
		}
		failed, ok := errors.AsType[*redislimit.Error](err)
		switch {
		case !ok: // a retry cannot help
			return nil, err
		case failed.Reason == redislimit.Denied || failed.Reason == redislimit.TooOld || o.engineWait == 0:
			return nil, errorWithHint(fmt.Errorf("serve: --engine: %w", err), engineHint(failed.Reason))
		case time.Since(began) >= o.engineWait:
			return nil, errorWithHint(fmt.Errorf("serve: --engine: not ready within %v: %w", o.engineWait, err), engineHint(failed.Reason), "wait longer with --engine-wait")
		case !logged:
			log.Warn("the engine is not ready; trying again", "at_most", o.engineWait, "error", err)
		}
		select {
		case <-time.After(engineRetry):
		case <-ctx.Done():
			return nil, errorWithHint(fmt.Errorf("serve: --engine: stopped while waiting for Redis: %w", err), "nothing was served")
		}
	}
}

// tryRedis opens the engine and makes one decision.
func (o *serveOptions) tryRedis(ctx context.Context, log *slog.Logger, rules []*weir.Rule) (*redislimit.Engine, error) {
	engine, err := redislimit.Open(o.engine, redislimit.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	err = checkRules(engine, rules)
	if err == nil {
		within, cancel := context.WithTimeout(ctx, redisPatience)
		defer cancel()
		err = api.Probe(within, engine, rules[0])
	}
	if err != nil {
		engine.Close()
		return nil, err
	}
	return engine, nil
}

func engineHint(reason redislimit.Reason) string {
	switch reason {
	case redislimit.ReadOnly:
		return "name the master, or its Sentinels: redis-sentinel://HOST:PORT,…/MASTER"
	case redislimit.TooOld:
		return "docs/redis.md lists the tested versions of Redis and Valkey"
	}
	return "is the server running, and does it accept this user? docs/redis.md lists the commands that the user needs"
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
	if !ok {
		return "the engine could not decide"
	}
	if words, known := engineReasons[failed.Reason]; known {
		return words
	}
	return "Redis: " + string(failed.Reason)
}
