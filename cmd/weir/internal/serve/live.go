package serve

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/xds"
)

// liveOptions are the flags of the live page.
type liveOptions struct {
	viewers  int
	requests int
}

func (o *liveOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&o.viewers, "live-viewers", 32, "let at most `N` viewers watch the daemon at a time, on its page or by weir ctl top --watch")
	flags.IntVar(&o.requests, "live-requests", 20_000, "while somebody watches, keep at most `N` requests of the last minutes, to try other limits on")
}

// mostRequests bounds the sample: each request takes up to 350 bytes.
const mostRequests = 10_000_000

func (o *liveOptions) check() error {
	switch {
	case o.viewers < 0 || o.viewers > besideConnections/2:
		return cli.Misusef("the admin port has 64 connections, and each viewer keeps one; 0 lets nobody watch", "--live-viewers %d: want 0 to %d", o.viewers, besideConnections/2)
	case o.requests < 0 || o.requests > mostRequests:
		return cli.Misusef("the default is 20000; 0 keeps none", "--live-requests %d: want 0 to %d", o.requests, mostRequests)
	}
	return nil
}

// live watches the daemon. It goes on until the admin port stops.
func (o *options) newLive(ctx context.Context, d *started, s *server) *live.Live {
	began := time.Now()
	version, revision := metrics.Version()
	l := live.New(live.Options{
		Metrics: d.seen, Overrides: d.changed.Entries, Engine: d.engine.Engine, Viewers: o.live.viewers, Requests: o.live.requests,
		Rules:    func(name string) *weir.Rule { return s.desk.InForce().Known(name) },
		IsShadow: d.modes.isShadow,
		Now: func() live.Now {
			now := live.Now{Version: version, Revision: revision, Started: live.TimeOf(began), Ctl: o.ports.ctl(), Unready: s.api.Unready(),
				Rules: s.desk.InForce().Number(), Shadows: d.modes.shadows(), AllShadows: o.shadow.all, Overrides: len(d.changed.Entries()), Waiting: s.desk.WaitingCallers()}
			now.Engine, now.Pushed = o.engine.state(d.engine, began), pushedNow(d.used.pushed.origin())
			if memory, ok := weir.Find[*weir.Memory](d.engine.Engine); ok {
				stats := memory.Stats()
				now.Keys, now.MaxKeys = stats.Keys, stats.MaxKeys
			}
			if d.engine.counter != nil && d.engine.counter.Seen() > 0 {
				now.Daemons = &live.Daemons{Seen: d.engine.counter.Seen(), Peers: d.engine.peers(), Auto: o.engine.layers.AutoPeers()}
			}
			ends := o.ports.keys.Ends()
			for _, flag := range slices.Sorted(maps.Keys(ends)) {
				now.Certificates = append(now.Certificates, live.Certificate{Flag: flag, Ends: live.TimeOf(ends[flag])})
			}
			return now
		},
	})
	ctx, o.ports.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	go l.Run(ctx)
	go d.seen.Peek(ctx, func() bool { return d.engine.health.fails() != "" })
	return l
}

// pushedNow is which pushed rules are in force, for viewers.
func pushedNow(o *xds.Origin) *live.Pushed {
	if o == nil {
		return nil
	}
	now := &live.Pushed{Server: o.Server, Connected: o.Connected, Since: live.TimeOf(o.Since), Why: o.Why, Version: o.Version, Restored: o.Restored, Refused: len(o.Bad)}
	if !o.Pushed.IsZero() {
		at := live.TimeOf(o.Pushed)
		now.At = &at
	}
	return now
}

// state is how the engine is, for viewers.
func (o *engineOptions) state(e *chosenEngine, began time.Time) live.Engine {
	now := live.Engine{Kind: o.kind(), Up: true, Since: live.TimeOf(began)}
	if e.guard == nil {
		return now
	}
	if back := e.health.back.Load(); back != nil {
		now.Since = live.TimeOf(*back)
	}
	now.Policy = o.layers.Policy(e.peers())
	if gone := e.health.gone.Load(); gone != nil {
		now.Up, now.Since, now.Why = false, live.TimeOf(gone.At), e.health.fails()
	}
	return now
}

// ctl returns what weir ctl needs to reach the daemon.
func (o *portOptions) ctl() string {
	at := o.adminAt.Load()
	if at == nil {
		return ""
	}
	address := *at
	switch {
	case address.Network() == "unix":
		return "--admin " + place(address)
	case o.files.Cert != "" && !o.onlyGRPC:
		return "--admin https://" + reachable(address)
	}
	return "--admin " + reachable(address)
}

// problemsOf returns what is wrong with rules files, a line each.
func problemsOf(err error) (all []string) {
	if err == nil {
		return nil
	}
	if problems, ok := errors.AsType[rules.Problems](err); ok {
		for _, p := range problems {
			all = append(all, p.String())
		}
		return all
	}
	return []string{err.Error()}
}

// endWith has a server end the streams of viewers before it waits for requests.
func endWith(service service, end func()) {
	if h, ok := service.(*http.Server); ok && end != nil {
		h.RegisterOnShutdown(end)
	}
}
