package serve

import (
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/desk"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rls"
	"github.com/weirflow/weir/httplimit"
)

// envoyOptions are the flags of Envoy's rate limit service.
type envoyOptions struct {
	address string
	headers string
	maxAge  time.Duration
}

// headerFormats are the values of --grpc-headers.
var headerFormats = map[string]httplimit.Headers{
	"none": httplimit.NoHeaders, "draft11": httplimit.Draft11, "draft07": httplimit.Draft07, "draft06": httplimit.Draft06, "legacy": httplimit.Legacy,
}

func (o *envoyOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.address, "grpc", "", "answer Envoy's rate limit service on `ADDR`, a HOST:PORT or unix:PATH")
	flags.StringVar(&o.headers, "grpc-headers", "none", "let Envoy add header fields about limits in `FORMAT`: none, draft11, draft07, draft06 or legacy")
	flags.DurationVar(&o.maxAge, "grpc-max-age", 24*time.Hour, "end connections of --grpc after this long, so that clients find new daemons; 0 lets them last")
	cli.Offer(cmd, "grpc", "127.0.0.1:8081")
	cli.Offer(cmd, "grpc-headers", "none", "draft11", "draft07", "draft06", "legacy")
}

func (o *envoyOptions) check(isSet func(flag string) bool, files bool) error {
	_, known := headerFormats[o.headers]
	switch {
	case o.address == "" && (isSet("grpc-headers") || isSet("grpc-max-age")):
		return cli.Misusef("say where to listen: --grpc 127.0.0.1:8081", "--grpc-headers or --grpc-max-age without --grpc")
	case o.address != "" && !files:
		return cli.Misusef("descriptors match the rules of files: docs/howto/envoy.md has an example", "--grpc without --config")
	case !known:
		return cli.Misusef("use none, draft11, draft07, draft06 or legacy", "--grpc-headers %s: no format of header fields", cli.Printable(o.headers))
	case o.maxAge < 0:
		return cli.Misusef("use a duration of 0 or more, like 1h", "--grpc-max-age %v: a negative duration", o.maxAge)
	}
	return nil
}

// server returns the rate limit service, or nil without --grpc.
func (o *envoyOptions) server(d *desk.Desk, stats *envoyproxy.Stats, log *slog.Logger) *rls.Server {
	if o.address == "" {
		return nil
	}
	return rls.New(rls.Options{Desk: d, Headers: headerFormats[o.headers], Log: log, Stats: stats})
}

// port returns the port of the service.
func (o *envoyOptions) port(envoy *rls.Server, s *server) (p port, err error) {
	on, err := listen("grpc", o.address)
	if err != nil {
		return p, err
	}
	options := rls.PortOptions{Connections: s.open.most, MaxAge: o.maxAge, Grace: s.grace, Unready: s.unhealthy}
	if on.Addr().Network() != "unix" {
		options.TLS = s.ports.keys.TLS("h2")
	}
	return port{"grpc", on, rls.NewPort(envoy, options)}, nil
}
