package pace

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/filter"
	"github.com/weirflow/weir/redislimit"
)

// enginePatience is how long a pipe asks a failing Redis again before it ends.
const enginePatience = 10 * time.Second

// open opens the Redis of --engine, if there is one, and checks that the filter can use it.
func (o *options) open(f *job) error {
	f.close = func() {}
	if o.engine != "" {
		if _, _, err := redislimit.ParseURL(o.engine); err != nil {
			return cli.Misuse(fmt.Errorf("--engine: %w", err), cli.EngineHints[1:]...)
		}
		engine, err := redislimit.Open(o.engine, redislimit.Options{})
		if err != nil {
			return engineError(err)
		}
		f.close = engine.Close
		f.options.Engine, f.options.Patience = engine, enginePatience
		f.options.Name = o.sharedName(f.options.Limits)
	}
	err := f.probe()
	if err != nil {
		f.close()
	}
	return err
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
