package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/livepage"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/resp"
	"github.com/weirflow/weir/cmd/weir/internal/rls"
)

// portOptions are the flags of the ports besides --http, and those that say who may use them.
type portOptions struct {
	admin, metrics  string
	resp            string
	envoy           envoyOptions
	insecure, pprof bool
	inPlaceOf       bool   // envoyproxy/ratelimit, whose addresses every machine may reach
	onlyGRPC        bool   // connections of Envoy alone are encrypted
	debug           string // the address of its debug port, or ""
	debugged        http.Handler
	files           auth.Files
	keys            *auth.Keys   // of the files
	changes         http.Handler // of weir ctl
	watch           http.Handler // of viewers
	unwatch         func()       // ends their streams
	adminAt         atomic.Pointer[net.Addr]
	seen            *metrics.Metrics
}

func (o *portOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.admin, "admin", "", "serve the admin port on `ADDR`: unix:PATH (default a socket that the start prints), or a HOST:PORT")
	flags.StringVar(&o.metrics, "metrics", "", "also serve /metrics on `ADDR`, a HOST:PORT or unix:PATH")
	flags.StringVar(&o.resp, "resp", "", "also answer Redis clients on `ADDR`, a HOST:PORT or unix:PATH")
	flags.StringVar(&o.files.Tokens, "tokens", "", "let in only callers that show a token, or a certificate, of `FILE`; weir token new makes lines of it")
	flags.StringVar(&o.files.Cert, "tls-cert", "", "encrypt connections with the certificate in `FILE`")
	flags.StringVar(&o.files.Key, "tls-key", "", "the key of --tls-cert is in `FILE`")
	flags.StringVar(&o.files.ClientCA, "tls-client-ca", "", "let in callers whose certificate is signed by one in `FILE`")
	flags.BoolVar(&o.insecure, "insecure", false, "let every machine that can connect take and give back")
	flags.BoolVar(&o.pprof, "pprof", false, "serve profiles of the daemon at /debug/pprof/ on the admin port")
	o.envoy.addFlags(cmd)
	cli.Offer(cmd, "admin", "unix:weir.sock")
	cli.Offer(cmd, "metrics", "127.0.0.1:9090")
	cli.Offer(cmd, "resp", "127.0.0.1:6380")
}

// port is an address that the daemon serves besides --http.
type port struct {
	name    string // for logs
	on      net.Listener
	service service
}

// service serves a port: an [http.Server], or the server of another protocol. Serve returns at the latest when
// Shutdown has returned.
type service interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// The bounds of admin and metrics: few callers, and profiles that take their time.
const (
	besideConnections = 64
	besideTimeout     = 5 * time.Minute
	besideGrace       = time.Second
)

// busy returns the number of ports with many connections.
func (o *portOptions) busy() (n uint64) {
	for _, address := range []string{"http", o.resp, o.envoy.address} {
		if address != "" {
			n++
		}
	}
	return n
}

// keepFiles uses changed files until the context ends.
func (o *portOptions) keepFiles(ctx context.Context, log *slog.Logger) {
	o.keys.Watch(ctx, reloadSignals(true), func(err error) {
		if err != nil {
			log.Error("the tokens and certificates in use stay: a file has a problem", "err", err)
			return
		}
		log.Info("tokens and certificates reloaded")
		o.warnOfModes(log)
	})
}

// httpPort serves a handler at a port.
func (o *portOptions) httpPort(name string, on net.Listener, who *auth.Port, handler http.Handler, log *slog.Logger) port {
	open := &connections{most: besideConnections}
	h := newHTTPServer(handler, who, open, log)
	h.WriteTimeout = besideTimeout
	return port{name: name, on: o.encrypted(&listener{on, open}, "http/1.1"), service: h}
}

// encrypted returns the listener with TLS, if there is a certificate for it. A socket of this machine needs none.
func (o *portOptions) encrypted(on net.Listener, protocols ...string) net.Listener {
	if o == nil || o.onlyGRPC { // a server of tests
		return on
	}
	if config := o.keys.TLS(protocols...); config != nil && on.Addr().Network() != "unix" {
		return tls.NewListener(on, config)
	}
	return on
}

// checkFiles refuses flags of files that need one another.
func (o *portOptions) checkFiles() error {
	switch f := o.files; {
	case (f.Cert == "") != (f.Key == ""):
		return cli.Misusef("name both: --tls-cert weir.pem --tls-key weir.key", "--tls-cert and --tls-key: one is missing")
	case f.ClientCA != "" && f.Cert == "":
		return cli.Misusef("only callers over TLS show a certificate: --tls-cert weir.pem --tls-key weir.key", "--tls-client-ca without --tls-cert")
	}
	return nil
}

// readFiles reads what callers and the daemon show.
func (o *portOptions) readFiles() (err error) {
	if o.keys, err = auth.Open(o.files); err != nil {
		return cli.Fail(fmt.Errorf("serve: %w", err), "docs/howto/machines.md describes the files")
	}
	return nil
}

// open listens on the addresses of Redis clients, Envoy, metrics and admin. Nothing is served yet.
func (o *portOptions) open(named hosts, traffic net.Addr, s *server, redis resp.Options, envoy *rls.Server, log *slog.Logger) (ports []port, err error) {
	defer func() {
		if err != nil {
			closePorts(ports)
		}
	}()
	if o.resp != "" {
		on, err := listen("resp", o.resp)
		if err != nil {
			return ports, err
		}
		redis.Auth = o.auth(named, on.Addr())
		ports = append(ports, port{"resp", o.encrypted(on), resp.New(redis)})
		if err := o.checkReach("resp", o.resp, on.Addr()); err != nil {
			return ports, err
		}
	}
	if envoy != nil {
		p, err := o.envoy.port(envoy, s)
		if err != nil {
			return ports, err
		}
		envoy.Auth = o.auth(named, p.on.Addr())
		ports = append(ports, p)
		if err := o.checkReach("grpc", o.envoy.address, p.on.Addr()); err != nil {
			return ports, err
		}
	}
	if o.metrics != "" {
		on, err := listen("metrics", o.metrics)
		if err != nil {
			return ports, err
		}
		ports = append(ports, o.httpPort("metrics", on, o.auth(named, on.Addr()), o.metricsHandler(), log))
		if err := o.checkReach("metrics", o.metrics, on.Addr()); err != nil {
			return ports, err
		}
	}
	if o.debug != "" {
		on, err := listen("debug", o.debug)
		if err != nil {
			return ports, err
		}
		ports = append(ports, o.httpPort("debug", on, o.auth(named, on.Addr()), o.debugged, log))
	}
	on, err := o.listenAdmin(traffic, log)
	if err != nil || on == nil {
		return ports, err
	}
	at := on.Addr()
	o.adminAt.Store(&at)
	admin := o.httpPort("admin", on, o.adminDoor(named, on.Addr()), auth.Shield(o.adminHandler(s.api)), log)
	endWith(admin.service, o.unwatch)
	return append(ports, admin), nil
}

// listenAdmin listens on the address of --admin, or on a socket that no other process of this machine uses. Without such a
// socket it returns nil.
func (o *portOptions) listenAdmin(traffic net.Addr, log *slog.Logger) (net.Listener, error) {
	if o.admin != "" {
		on, err := listen("admin", o.admin)
		_, own := on.(*socket)
		switch {
		case err != nil:
		case !own && on.Addr().Network() == "unix" && openToAll(on.Addr().String()):
			_ = on.Close()
			err = cli.Misusef("set SocketMode=0600 in the socket unit", "--admin: every user of this machine can connect to the inherited socket %s, and its callers may do everything", on.Addr())
		case on.Addr().Network() != "unix" && o.files.Tokens == "":
			_ = on.Close()
			err = cli.Misusef("use a socket: --admin unix:weir.sock, or name who may come in: --tokens FILE", "--admin %s: callers over TCP cannot show who they are", o.admin)
		}
		return on, err
	}
	path, err := defaultSocket(traffic)
	if err == nil {
		var on net.Listener
		if on, err = listenUnix(path, adminMode); err == nil {
			return on, nil
		}
	}
	log.Warn("serving without an admin port; --admin names another place for it", "err", err)
	return nil, nil
}

// adminAsks reports whether callers of the admin port have to identify themselves, even if those of other ports need not.
func (o *portOptions) adminAsks() bool { return o.admin != "" && !strings.HasPrefix(o.admin, "unix:") }

// openToAll reports whether every user may connect to a unix socket. One without a file is open to all.
func openToAll(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().Perm()&0o002 != 0
}

// adminHandler serves all paths of the daemon, and those that only its owner needs.
func (o *portOptions) adminHandler(all http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", all)
	mux.Handle("GET /{$}", livepage.Handler())
	mux.Handle("GET /live/", livepage.Handler())
	mux.Handle("/v1/admin/", o.changes)
	mux.Handle("GET /v1/admin/live", o.watch)
	mux.Handle("/metrics", o.metricsHandler())
	mux.Handle("GET /v1/top", auth.Guard(auth.Admin, o.seen.Top))
	if o.pprof {
		profiles := http.NewServeMux()
		profiles.HandleFunc("/debug/pprof/", pprof.Index)
		profiles.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		profiles.HandleFunc("/debug/pprof/profile", pprof.Profile)
		profiles.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		profiles.HandleFunc("/debug/pprof/trace", pprof.Trace)
		mux.Handle("/debug/pprof/", auth.Guard(auth.Admin, profiles))
	}
	return mux
}

// metricsHandler serves /metrics.
func (o *portOptions) metricsHandler() http.Handler {
	only := http.NewServeMux()
	only.Handle("GET /metrics", o.seen.Handler())
	return auth.Guard(auth.Metrics, only)
}

// auth returns who may come in at a port other than admin: anyone, unless callers have to show who they are.
func (o *portOptions) auth(named hosts, at net.Addr) *auth.Port {
	p := &auth.Port{Hosts: named.at(at)}
	if o.keys.Required() {
		p.Keys = o.keys
	}
	if p.Keys == nil || o.insecure {
		p.Open = auth.Anyone("anyone", auth.Local)
	}
	return p
}

// adminDoor lets the owner of the socket do everything. It answers known Hosts alone, because the port serves a page.
func (o *portOptions) adminDoor(named hosts, at net.Addr) *auth.Port {
	if at.Network() == "unix" {
		return &auth.Port{Open: auth.Anyone("admin socket", auth.All), Hosts: named.page("")}
	}
	return &auth.Port{Keys: o.keys, Hosts: named.page(o.admin)}
}

// checkReach refuses an address that other machines can reach, unless callers show who they are.
func (o *portOptions) checkReach(flag, address string, at net.Addr) error {
	if local(at) || o.insecure || o.inPlaceOf || o.keys.Required() {
		return nil
	}
	return cli.Misusef("listen on this machine alone, like 127.0.0.1:8080, or say who may come in with --tokens FILE, or let every machine in with --insecure",
		"--%s %s: other machines can reach this address, and anyone could take and give back", flag, address)
}

// local reports whether only this machine can connect to an address.
func local(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// serve serves the port until Shutdown.
func (p *port) serve() error {
	if err := p.service.Serve(p.on); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %s: %w", p.name, err)
	}
	return nil
}

// stop ends a port. Requests in flight get a moment.
func (p *port) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), besideGrace)
	defer cancel()
	if p.service.Shutdown(ctx) != nil {
		if h, ok := p.service.(*http.Server); ok {
			_ = h.Close()
		}
	}
}

func closePorts(ports []port) {
	for _, p := range ports {
		_ = p.on.Close()
	}
}
