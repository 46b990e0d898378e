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

// defaultEngineWait is longer than a Redis takes to start, or a failover.
const defaultEngineWait = 10 * time.Second

// engineRetry is the time between two attempts.
const engineRetry = 250 * time.Millisecond

// awaitRedis opens the Redis of --engine. One that is absent or takes no writes
// is tried again for --engine-wait.
func (o *serveOptions) awaitRedis(ctx context.Context, log *slog.Logger, rules []*weir.Rule) (*redislimit.Engine, error) {
	began := time.Now()
	for told := false; ; told = true {
		engine, err := o.tryRedis(ctx, rules)
		if err == nil {
			return engine, nil
		}
		failed, ok := errors.AsType[*redislimit.Error](err)
		switch {
		case !ok: // trying again does not help
			return nil, err
		case failed.Reason == redislimit.Denied || failed.Reason == redislimit.TooOld || o.engineWait == 0:
			return nil, errorWithHint(fmt.Errorf("serve: --engine: %w", err), engineHint(failed.Reason))
		case time.Since(began) >= o.engineWait:
			return nil, errorWithHint(fmt.Errorf("serve: --engine: not ready within %v: %w", o.engineWait, err), engineHint(failed.Reason), "wait longer with --engine-wait")
		case !told:
			log.Warn("the engine is not ready; trying again", "at_most", o.engineWait, "error", err)
		}
		select {
		case <-time.After(engineRetry):
		case <-ctx.Done():
			return nil, errorWithHint(fmt.Errorf("serve: --engine: stopped while waiting for it: %w", err), "nothing was served")
		}
	}
}

// tryRedis opens the engine and has it decide once.
func (o *serveOptions) tryRedis(ctx context.Context, rules []*weir.Rule) (*redislimit.Engine, error) {
	engine, err := redislimit.Open(o.engine, redislimit.Options{})
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
		return "name the master; or Sentinels, which know it: redis-sentinel://HOST:PORT,…/MASTER"
	case redislimit.TooOld:
		return "docs/redis.md lists the versions of Redis and Valkey that were seen to pass"
	}
	return "is the server running, and may this user use it? docs/redis.md lists what Redis has to allow"
}

// engineReasons are the failures of Redis in words for strangers: without
// addresses.
var engineReasons = map[redislimit.Reason]string{
	redislimit.ReadOnly:    "Redis takes no writes: it is a replica, or lacks replicas",
	redislimit.Loading:     "Redis starts and reads its data",
	redislimit.OutOfMemory: "Redis is out of memory",
	redislimit.Denied:      "Redis denies this user what the engine needs",
	redislimit.ClusterDown: "the Redis cluster has slots without an owner, or they are moving",
	redislimit.Lost:        "the connection to Redis failed, or gave no answer in time",
}

func engineReason(err error) string {
	failed, ok := errors.AsType[*redislimit.Error](err)
	if !ok {
		return "it could not decide"
	}
	if words, known := engineReasons[failed.Reason]; known {
		return words
	}
	return "Redis: " + string(failed.Reason)
}
