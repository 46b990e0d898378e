package serve

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/rls"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/sqlengine"
	"github.com/weirflow/weir/redislimit"
)

// compatOptions are the flag of --compat, and the environment of the other program.
type compatOptions struct {
	as       string
	inPlace  bool // the program is called as the other one
	settings envoyproxy.Settings
	unused   []string
	overlay  []string
	plane    *envoyproxy.ControlPlane // that pushes rules; nil for rules in files
	stats    envoyproxy.Stats
}

// compatEnvoy is the only other program whose files are read.
const compatEnvoy = "envoyproxy"

func (o *compatOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.as, "compat", "", "read the files and the environment of another `PROGRAM`, and count as it does: envoyproxy, for envoyproxy/ratelimit")
	cmd.Flags().StringArrayVar(&o.overlay, "overlay", nil, "lay the rules of `FILE` over those that a control plane pushes; may be repeated")
	cli.Offer(cmd, "compat", compatEnvoy)
}

// on reports whether another program's files are read.
func (o *compatOptions) on() bool { return o.as != "" }

// apply sets the flags that are not set from the environment of the other program.
func (o *compatOptions) apply(cmd *cobra.Command, ports *portOptions, spans *traceOptions) error {
	switch {
	case !o.on() && len(o.overlay) > 0:
		return cli.Misusef("its rules stand beside those that a control plane pushes: --compat envoyproxy and CONFIG_TYPE=GRPC_XDS_SOTW", "--overlay without --compat envoyproxy")
	case !o.on():
		return nil
	case o.as != compatEnvoy:
		return cli.Misusef("use envoyproxy", "--compat %s: no program that weir knows", cli.Printable(o.as))
	case cmd.Flags().Changed("grpc-headers"):
		return cli.Misusef("LIMIT_RESPONSE_HEADERS_ENABLED=true adds header fields", "--grpc-headers with --compat: the environment chooses the header fields")
	}
	read, err := envoyproxy.Read(os.Getenv, o.inPlace)
	if err != nil {
		return cli.Misuse(fmt.Errorf("--compat envoyproxy: %w", err), "docs/reference/envoyproxy.md#environment lists the environment variables")
	}
	o.settings, o.unused, o.plane = read.Settings, read.Unused, read.ControlPlane
	for name, password := range read.Passwords {
		_ = os.Setenv(name, password) // for the URL of --engine; it fails for no name that has been read
	}
	spans.service = read.Service
	ports.inPlaceOf, ports.debug = o.inPlace, read.Debug
	ports.onlyGRPC = read.Flags["tls-cert"] != "" && !cmd.Flags().Changed("tls-cert")
	for name, value := range read.Flags {
		if cmd.Flags().Changed(name) {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return cli.Misuse(fmt.Errorf("--compat envoyproxy: --%s: %w", name, err), "docs/reference/envoyproxy.md#environment lists the environment variables")
		}
	}
	switch files := cmd.Flags().Changed("config"); {
	case files && o.plane != nil:
		return cli.Misusef("leave --config out, or CONFIG_TYPE", "--config with CONFIG_TYPE=GRPC_XDS_SOTW: the control plane has the rules")
	case o.plane == nil && len(o.overlay) > 0:
		return cli.Misusef("its rules stand beside those that a control plane pushes: CONFIG_TYPE=GRPC_XDS_SOTW", "--overlay with rules in files")
	case !files && o.plane == nil:
		return cli.Misusef("name the folder of its files: --config DIR, or RUNTIME_ROOT", "--compat envoyproxy without --config")
	}
	return nil
}

// parsing returns the options that read the other program's files, and find the limits that a Redis cannot hold where
// they stand.
func (o *compatOptions) parsing(engine string) (rulefiles.Options, error) {
	if !o.on() {
		return rulefiles.Options{}, nil
	}
	options := rulefiles.Options{Parse: envoyproxy.Parser(o.settings, &o.stats)}
	if engine == memoryEngine || sqlengine.Names(engine) {
		return options, nil
	}
	redis, err := redislimit.Open(engine, redislimit.Options{ConnectLater: true})
	if err != nil {
		return options, cli.Misuse(fmt.Errorf("--engine: %w", err), cli.EngineHints...)
	}
	options.Check = func(rules ...*weir.Rule) error { return redis.Check(rules...) }
	redis.Close()
	return options, nil
}

// begin logs what the environment and the files say without effect.
func (o *compatOptions) begin(log *slog.Logger, config *rules.Config) {
	for _, variable := range o.unused {
		log.Warn("a variable of the environment has no effect", "variable", variable)
	}
	o.warn(log, config)
}

// warn logs what the files say without effect.
func (o *compatOptions) warn(log *slog.Logger, config *rules.Config) {
	if config == nil {
		return
	}
	if foreign, ok := config.Foreign.(*envoyproxy.Config); ok {
		var all []said
		for _, n := range foreign.Notes {
			where := fmt.Sprintf("%s:%d", n.File, n.Line)
			all = append(all, said{where, n.Text, []any{"where", where, "what", n.Text}})
		}
		sayOnce(log, "a rules file says something without effect", all)
	}
}

// unhealthy returns why health checks fail, or "". A setting of the other program makes them fail without a connection
// to Redis.
func (o *compatOptions) unhealthy(a *api.API, d *decide.Desk) string {
	if o.settings.EngineHealth {
		return cmp.Or(a.Unready(), d.EngineFails())
	}
	return a.Unready()
}

// paths are those that the HTTP port answers for the service, and for the other program.
func (o *compatOptions) paths(envoy *rls.Server, unhealthy func() string) map[string]http.Handler {
	switch {
	case envoy == nil:
		return nil
	case !o.on():
		return map[string]http.Handler{"/json": envoy}
	}
	return map[string]http.Handler{
		"/json": envoy,
		"/healthcheck": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if unhealthy() != "" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = w.Write([]byte("OK"))
		}),
		"/stats": o.statsHandler(),
	}
}

// statsHandler serves the statistics of the other program.
func (o *compatOptions) statsHandler() http.Handler {
	return auth.Guard(auth.Metrics, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = o.stats.Write(w) // an error means that the client has gone
	}))
}

// debugHandler serves what the other program has on its debug port.
func (o *compatOptions) debugHandler(config func() *rules.Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /stats", o.statsHandler())
	mux.Handle("GET /rlconfig", auth.Guard(auth.Metrics, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if foreign, ok := config().Foreign.(*envoyproxy.Config); ok {
			_ = foreign.Dump(w) // an error means that the client has gone
		}
	})))
	return mux
}
