// Package engineflags opens the engine of --engine for commands that share limits with others of their kind, such as pipes and
// crawlers on several machines.
package engineflags

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/sqlengine"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// Flags are the flags of an engine that several processes share.
type Flags struct {
	Engine string // a URL, or nothing
	Name   string
	layers cli.Layers

	command, sharers string
}

// Add adds the flags to a command, whose processes are called pipes or crawlers.
func (f *Flags) Add(cmd *cobra.Command, sharers string) {
	f.command, f.sharers = cmd.Name(), sharers
	flags := cmd.Flags()
	flags.StringVar(&f.Engine, "engine", "", "share the pace with all "+sharers+" that name the same server, a `URL` like redis://127.0.0.1:6379 or postgres://HOST/DB")
	flags.StringVar(&f.Name, "name", "", "share the pace with "+sharers+" of this `NAME` only")
	f.layers.AddFlags(cmd, sharers)
	cli.Offer(cmd, "engine", "redis://127.0.0.1:6379")
	cli.Offer(cmd, "name")
}

// Check refuses flags without an engine, and wrong values.
func (f *Flags) Check(isSet func(flag string) bool) error {
	for _, flag := range append([]string{"name"}, cli.LayerFlags...) {
		if f.Engine == "" && isSet(flag) {
			return cli.Misusef("name the Redis that the "+f.sharers+" share: --engine redis://127.0.0.1:6379", "%s: --%s without --engine", f.command, flag)
		}
	}
	return f.layers.Check()
}

// denyDeadline is the least --deadline of a command that has no other answer: it would wait anyway.
const denyDeadline = time.Second

// Open opens the engine with layers around it. It calls lost when the server has been away for the Patience, unless a
// policy answers meanwhile. Call end after the last decision. Without --engine there is none.
func (f *Flags) Open(lost context.CancelCauseFunc) (engine weir.Engine, end func(), err error) {
	if f.Engine == "" {
		return nil, func() {}, nil
	}
	if err := CheckURL(f.Engine); err != nil {
		return nil, nil, cli.Misuse(fmt.Errorf("--engine: %w", err), cli.EngineHints[1:]...)
	}
	guard, err := f.layers.Guard(nil)
	if err != nil {
		return nil, nil, err
	}
	below, err := open(f.Engine)
	if err != nil {
		return nil, nil, Explain(f.command, err)
	}
	if engine, end, err = layered(below, guard, lost); err != nil {
		below.Close()
		return nil, nil, err
	}
	if err := try(engine); err != nil {
		end()
		return nil, nil, Explain(f.command, err)
	}
	return engine, end, nil
}

// layered puts the layers around a server.
func layered(below server, guard layer.GuardOptions, lost context.CancelCauseFunc) (engine weir.Engine, end func(), err error) {
	denies := guard.OnFailure == layer.Deny
	if denies {
		guard.Deadline = max(guard.Deadline, denyDeadline)
	}
	engine, stop, err := layer.ForNetwork(below, layer.NetworkOptions{Guard: guard})
	if err != nil {
		return nil, nil, err
	}
	if !denies {
		return engine, func() { stop(); below.Close() }, nil
	}
	done := make(chan struct{})
	go watch(engine, lost, done)
	return engine, func() { close(done); stop(); below.Close() }, nil
}

// try asks the engine whether it can decide.
func try(engine weir.Engine) error {
	rule, err := weir.NewRule("~try", weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.RedisPatience)
	defer cancel()
	_, err = engine.Peek(ctx, rule.For("", 1))
	return err
}

// server is an engine of several processes.
type server interface {
	weir.Engine
	weir.SlotKeeper
	Close()
}

func open(where string) (server, error) {
	if !sqlengine.Names(where) {
		return redislimit.Open(where, redislimit.Options{})
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.RedisPatience)
	defer cancel()
	return sqlengine.Open(ctx, where, false)
}

// CheckURL returns the error of a URL that names no engine.
func CheckURL(where string) error {
	if sqlengine.Names(where) {
		return sqlengine.Check(where)
	}
	_, _, err := redislimit.ParseURL(where)
	return err
}

// Patience is how long a command waits for a server that is away.
const Patience = 10 * time.Second

// Lost is why a command ends: its server stayed away.
type Lost struct{ Err error }

func (e *Lost) Error() string { return fmt.Sprintf("away for %v: %v", Patience, e.Err) }
func (e *Lost) Unwrap() error { return e.Err }

// watch calls lost when the engine has failed for the Patience. Callers that wait in its lines do not notice that.
func watch(engine weir.Engine, lost context.CancelCauseFunc, done <-chan struct{}) {
	var away time.Time // since when
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Second):
		}
		asked := time.Now()
		switch err := try(engine); {
		case err == nil:
			away = time.Time{}
		case away.IsZero():
			away = asked
		case time.Since(away) >= Patience:
			lost(&Lost{err})
			return
		}
	}
}

// Explain returns an error of a command's engine with a hint.
func Explain(command string, err error) error {
	hint := cli.EngineHints[1]
	if failed, ok := errors.AsType[*redislimit.Error](err); ok {
		hint = cli.EngineHint(failed.Reason)
	} else if sqlengine.Failed(err) {
		hint = sqlengine.FailureHint
	} else if errors.Is(err, fs.ErrNotExist) {
		hint = sqlengine.NoFolderHint
	}
	return cli.Fail(fmt.Errorf("%s: --engine: %w", command, err), hint)
}
