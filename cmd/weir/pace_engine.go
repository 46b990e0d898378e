package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/filter"
	"github.com/weirflow/weir/redislimit"
)

// enginePatience is how long a pipe asks a failing Redis again before it ends.
const enginePatience = 10 * time.Second

// shared returns the limits on an engine: of this process, or on the Redis of --engine.
func (o *paceOptions) shared(limits []weir.Limit) (*filter.Shared, func(), error) {
	if o.engine == "" {
		s, err := filter.NewShared(weir.NewMemory(weir.MemoryOptions{}), "pace", limits...)
		if err != nil {
			return nil, nil, paceLimitError(err)
		}
		return s, func() {}, nil
	}
	if _, _, err := redislimit.ParseURL(o.engine); err != nil {
		return nil, nil, usageWithHint(fmt.Errorf("--engine: %w", err), engineHints[1:]...)
	}
	engine, err := redislimit.Open(o.engine, redislimit.Options{})
	if err != nil {
		return nil, nil, paceEngineError(err)
	}
	s, err := o.sharedOn(engine, limits)
	if err != nil {
		engine.Close()
		return nil, nil, err
	}
	return s, engine.Close, nil
}

func (o *paceOptions) sharedOn(engine weir.Engine, limits []weir.Limit) (*filter.Shared, error) {
	s, err := filter.NewShared(engine, o.sharedName(limits), limits...)
	if err != nil {
		return nil, paceLimitError(err)
	}
	s.Patience = enginePatience
	ctx, cancel := context.WithTimeout(context.Background(), redisPatience)
	defer cancel()
	if _, err := engine.Peek(ctx, s.Rule.For("", 0)); err != nil {
		return nil, paceEngineError(err)
	}
	return s, nil
}

// sharedName returns the name of the rule. Lines and bytes under the same limits share nothing.
func (o *paceOptions) sharedName(limits []weir.Limit) string {
	name := o.name
	if name == "" {
		var texts []string
		for _, limit := range limits {
			texts = append(texts, limit.String())
		}
		name = strings.Join(texts, " and ")
	}
	if o.bytes != "" {
		return "pace bytes " + name
	}
	return "pace " + name
}

// paceEngineError explains a failure of the engine.
func paceEngineError(err error) error {
	hint := engineHints[1]
	if failed, ok := errors.AsType[*redislimit.Error](err); ok {
		hint = engineHint(failed.Reason)
	}
	return errorWithHint(fmt.Errorf("pace: --engine: %w", err), hint)
}
