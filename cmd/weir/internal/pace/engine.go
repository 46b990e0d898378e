package pace

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/filter"
	"github.com/weirflow/weir/cmd/weir/internal/sqlengine"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// enginePatience is how long a pipe asks a failing server again before it ends.
const enginePatience = 10 * time.Second

// denyDeadline is the least --deadline of a pipe that has no other answer: it would wait anyway.
const denyDeadline = time.Second

// open opens the engine of --engine, if there is one, and checks that the filter can use it.
func (o *options) open(f *job) error {
	f.close = func() {}
	if o.engine != "" {
		if err := o.checkEngine(); err != nil {
			return cli.Misuse(fmt.Errorf("--engine: %w", err), cli.EngineHints[1:]...)
		}
		var err error
		if f.options.Engine, f.close, err = o.openEngine(); err != nil {
			return err
		}
		f.options.Patience = enginePatience
		f.options.Name = o.sharedName(f.options.Limits)
	}
	err := f.probe()
	if err != nil {
		f.close()
	}
	return err
}

// checkEngine returns the error of a URL that names no engine.
func (o *options) checkEngine() error {
	if sqlengine.Names(o.engine) {
		return sqlengine.Check(o.engine)
	}
	_, _, err := redislimit.ParseURL(o.engine)
	return err
}

// sharedEngine is an engine of several processes.
type sharedEngine interface {
	weir.Engine
	weir.Holder
	Close()
}

func (o *options) openShared() (sharedEngine, error) {
	if !sqlengine.Names(o.engine) {
		return redislimit.Open(o.engine, redislimit.Options{})
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.RedisPatience)
	defer cancel()
	return sqlengine.Open(ctx, o.engine)
}

// openEngine opens the engine of --engine with layers around it.
func (o *options) openEngine() (engine weir.Engine, end func(), err error) {
	guard, err := o.layers.Guard(nil)
	if err != nil {
		return nil, nil, err
	}
	if guard.OnFailure == layer.Deny {
		guard.Deadline = max(guard.Deadline, denyDeadline)
	}
	shared, err := o.openShared()
	if err != nil {
		return nil, nil, engineError(err)
	}
	engine, stop, err := layer.Around(shared, layer.AroundOptions{Guard: guard})
	if err != nil {
		shared.Close()
		return nil, nil, err
	}
	if guard.OnFailure != layer.Deny {
		engine = unlined{engine, shared}
	}
	return engine, func() { stop(); shared.Close() }, nil
}

// unlined hides the lines of an engine, in which callers would wait for it through an outage. So they ask the Guard.
type unlined struct {
	weir.Engine
	weir.Holder
}

// probe makes a filter, and a decision of its engine.
func (f *job) probe() error {
	probe, err := filter.New(f.options)
	if err != nil {
		return limitError(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.RedisPatience)
	defer cancel()
	if err := probe.Probe(ctx); err != nil {
		return engineError(err)
	}
	return nil
}

// sharedName returns the name of the rule. Lines and bytes under the same limits share nothing.
func (o *options) sharedName(limits []weir.Limit) string {
	name := o.name
	if name == "" {
		var texts []string
		for _, limit := range limits {
			texts = append(texts, limit.String())
		}
		name = strings.Join(texts, " and ")
	}
	if o.bytes != "" {
		return "bytes " + name
	}
	return name
}
