package serve

import (
	"log/slog"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// warnOfFlags logs flags and variables that have no effect beside the others.
func (o *options) warnOfFlags(log *slog.Logger) {
	warn := func(flag, why string) { log.Warn("a flag has no effect", "flag", flag, "why", why) }
	if o.isSet("peers") && !o.engine.layers.Shares() {
		warn("--peers", "no policy of --on-failure, and no on_failure of a rule, is local")
	}
	if o.ports.insecure && !o.ports.adminAsks() {
		if o.ports.files.Tokens != "" {
			log.Warn("--insecure lets every machine take and give back without a token of --tokens; only what needs the scope admin asks for one")
		}
		if o.ports.files.ClientCA != "" {
			warn("--tls-client-ca", "--insecure lets every machine in, with a certificate and without")
		}
	}
	if o.ports.files.Cert != "" && o.onSocketsAlone() {
		warn("--tls-cert", "every port is a unix socket, which is not encrypted")
	}
	for _, name := range o.strayVariables(os.Environ()) {
		log.Warn("a variable of the environment has no effect", "variable", name, "why", "no flag of weir serve has that name")
	}
}

// onSocketsAlone reports whether no port is at a TCP address.
func (o *options) onSocketsAlone() bool {
	for _, address := range []string{o.http, o.ports.resp, o.ports.envoy.address, o.ports.metrics, o.ports.admin} {
		if address != "" && !strings.HasPrefix(address, "unix:") {
			return false
		}
	}
	return true
}

// ofKubernetes are the variables that Kubernetes sets for a service of the name weir.
var ofKubernetes = regexp.MustCompile(`^WEIR_(SERVICE_(HOST|PORT.*)|PORT(_.*)?)$`)

// strayVariables returns the variables that begin like those of flags and stand for none.
func (o *options) strayVariables(environment []string) (names []string) {
	known := map[string]bool{}
	o.flags.VisitAll(func(f *pflag.Flag) { known[variable(f.Name)] = true })
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "WEIR_") && !known[name] && !ofKubernetes.MatchString(name) && !strings.Contains(o.engine.where, "password_env="+name) {
			names = append(names, name)
		}
	}
	return names
}

// warnOfPolicies logs rules in files whose policy never answers.
func (o *options) warnOfPolicies(log *slog.Logger, config *rules.Config) {
	if config == nil || o.engine.shared() {
		return
	}
	for _, r := range config.Rules {
		if r.HasPolicy {
			log.Warn("a part of the rules files has no effect as it stands", "file", r.File, "line", r.Line, "where", "rule "+r.Name, "problem", "on_failure: the memory engine never fails, so no policy of a rule answers")
			return
		}
	}
}
