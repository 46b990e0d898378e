package serve

import (
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/kuadrant"
	"github.com/weirflow/weir/cmd/weir/internal/kuadrantpb"
	"github.com/weirflow/weir/cmd/weir/internal/rls"
	"github.com/weirflow/weir/httplimit"
)

// envoyOptions are the flags of Envoy's rate limit service, and of Kuadrant's beside it.
type envoyOptions struct {
	address string
	headers string
	maxAge  time.Duration
	holds   decide.HoldOptions
}

// headerFormats are the values of --grpc-headers.
var headerFormats = map[string]httplimit.Headers{
	"none": httplimit.NoHeaders, "draft11": httplimit.Draft11, "draft07": httplimit.Draft07, "draft06": httplimit.Draft06, "legacy": httplimit.Legacy,
}

func (o *envoyOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.address, "grpc", "", "answer Envoy's rate limit service, and Kuadrant's, on `ADDR`, a HOST:PORT or unix:PATH")
	flags.StringVar(&o.headers, "grpc-headers", "none", "let Envoy add header fields about limits in `FORMAT`: none, draft11, draft07, draft06 or legacy")
	flags.DurationVar(&o.maxAge, "grpc-max-age", 24*time.Hour, "end connections of --grpc after this long, so that clients find new daemons; 0 lets them last")
	flags.Int64Var(&o.holds.Share, "grpc-hold-share", 50, "let a Reserve of Kuadrant's service hold at most `PERCENT` of each limit")
	flags.DurationVar(&o.holds.Life, "grpc-hold-time", time.Minute, "let a Reserve of Kuadrant's service hold at most this long, and this long if it does not say")
	cli.Offer(cmd, "grpc", "127.0.0.1:8081")
	cli.Offer(cmd, "grpc-headers", "none", "draft11", "draft07", "draft06", "legacy")
}

// withGRPC are the flags that mean nothing without --grpc.
var withGRPC = []string{"grpc-headers", "grpc-max-age", "grpc-hold-share", "grpc-hold-time"}

// longestHold bounds --grpc-hold-time, and so what the engine remembers of holds.
const longestHold = 24 * time.Hour

func (o *envoyOptions) check(isSet func(flag string) bool, files bool) error {
	_, known := headerFormats[o.headers]
	switch {
	case o.address == "" && slices.ContainsFunc(withGRPC, isSet):
		return cli.Misusef("say where to listen: --grpc 127.0.0.1:8081", "--%s without --grpc", withGRPC[slices.IndexFunc(withGRPC, isSet)])
	case o.address != "" && !files:
		return cli.Misusef("descriptors match the rules of files: docs/howto/envoy.md has an example", "--grpc without --config")
	case !known:
		return cli.Misusef("use none, draft11, draft07, draft06 or legacy", "--grpc-headers %s: no format of header fields", cli.Printable(o.headers))
	case o.maxAge < 0:
		return cli.Misusef("use a duration of 0 or more, like 1h", "--grpc-max-age %v: a negative duration", o.maxAge)
	case o.holds.Share < 1 || o.holds.Share > 100:
		return cli.Misusef("use a percentage from 1 to 100", "--grpc-hold-share %d: no percentage of a limit", o.holds.Share)
	case o.holds.Life <= 0 || o.holds.Life > longestHold:
		return cli.Misusef("use a duration above 0 and up to 24h, like 1m", "--grpc-hold-time %v: not within a day", o.holds.Life)
	}
	return nil
}

// server returns the rate limit service, or nil without --grpc.
func (o *envoyOptions) server(d *decide.Desk, stats *envoyproxy.Stats, log *slog.Logger) *rls.Server {
	if o.address == "" {
		return nil
	}
	return rls.New(rls.Options{Desk: d, Headers: headerFormats[o.headers], Log: log, Stats: stats})
}

// port returns the port of the services.
func (o *envoyOptions) port(envoy *rls.Server, s *server) (p port, err error) {
	on, err := listen("grpc", o.address)
	if err != nil {
		return p, err
	}
	options := rls.PortOptions{Connections: s.open.most, MaxAge: o.maxAge, Grace: s.grace, Unready: s.unhealthy, Around: s.calls, Beside: func(services grpc.ServiceRegistrar) {
		kuadrantpb.RegisterRateLimitServiceServer(services, &kuadrant.Server{Envoy: envoy, Holds: o.holds})
	}}
	if on.Addr().Network() != "unix" {
		options.TLS = s.ports.keys.TLS("h2")
	}
	return port{"grpc", on, rls.NewPort(envoy, options)}, nil
}
