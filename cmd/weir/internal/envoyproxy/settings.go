package envoyproxy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Settings are the environment variables of envoyproxy/ratelimit that change decisions and answers.
type Settings struct {
	Shadow       bool    // SHADOW_MODE: every call is admitted
	Quota        bool    // QUOTA_MODE: every limit has quota_mode
	Metadata     bool    // RESPONSE_DYNAMIC_METADATA
	AllOrNothing bool    // STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
	MergeDomains bool    // MERGE_DOMAIN_CONFIG
	NearRatio    float32 // NEAR_LIMIT_RATIO
	Headers      bool    // LIMIT_RESPONSE_HEADERS_ENABLED
	HeaderNames  [3]string
	EngineHealth bool // REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: health checks fail while Redis does not decide
}

// Environment is the content of the variables: settings, flags of weir serve by their names, and passwords by the names
// of the variables that held a user, too.
type Environment struct {
	Settings  Settings
	Flags     map[string]string
	Passwords map[string]string
	Service   map[string]string // that spans are of, by the attributes of OpenTelemetry
	Debug     string            // the address of the debug port; "" without one
	// ControlPlane has the rules, if CONFIG_TYPE says so. Nil: files have them.
	ControlPlane *ControlPlane
	Unused       []string // variables without a counterpart, each with the consequence
}

// variables reads environment variables, and collects their errors.
type variables struct {
	get      func(string) string
	inPlace  bool
	problems []error
}

func (v *variables) text(name, otherwise string) string {
	if text := v.get(name); text != "" {
		return text
	}
	return otherwise
}

func (v *variables) flag(name string) bool {
	text := v.text(name, "false")
	on, err := strconv.ParseBool(text)
	if err != nil {
		v.problems = append(v.problems, fmt.Errorf("%s is %q, want true or false", name, text))
	}
	return on
}

func (v *variables) duration(name string, otherwise time.Duration) time.Duration {
	text := v.get(name)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	v.refuse(err != nil || d < 0, "%s is %q, want a duration like 30s", name, text)
	return d
}

func (v *variables) refuse(bad bool, format string, values ...any) {
	if bad {
		v.problems = append(v.problems, fmt.Errorf(format, values...))
	}
}

// Read reads the environment. In the place of envoyproxy/ratelimit the addresses are those where that listens, on every
// network, unless the environment says otherwise. The debug port is for this machine alone.
func Read(get func(string) string, inPlace bool) (Environment, error) {
	v := &variables{get: get, inPlace: inPlace}
	ratio, err := strconv.ParseFloat(v.text("NEAR_LIMIT_RATIO", "0.8"), 32)
	v.refuse(err != nil || ratio < 0 || ratio > 1, "NEAR_LIMIT_RATIO is %q, want a number from 0 to 1", v.text("NEAR_LIMIT_RATIO", ""))
	e := Environment{Flags: map[string]string{}, Passwords: map[string]string{}, Settings: Settings{
		Shadow: v.flag("SHADOW_MODE"), Quota: v.flag("QUOTA_MODE"), Metadata: v.flag("RESPONSE_DYNAMIC_METADATA"),
		AllOrNothing: v.flag("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"), MergeDomains: v.flag("MERGE_DOMAIN_CONFIG"),
		NearRatio: float32(ratio), Headers: v.flag("LIMIT_RESPONSE_HEADERS_ENABLED"), EngineHealth: v.flag("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION"),
		HeaderNames: [3]string{
			v.text("LIMIT_LIMIT_HEADER", "RateLimit-Limit"), v.text("LIMIT_REMAINING_HEADER", "RateLimit-Remaining"), v.text("LIMIT_RESET_HEADER", "RateLimit-Reset"),
		},
	}}
	switch kind := v.text("CONFIG_TYPE", "FILE"); kind {
	case "FILE":
	case "GRPC_XDS_SOTW":
		e.ControlPlane = v.controlPlane()
	default:
		v.refuse(true, "CONFIG_TYPE is %q, want FILE or GRPC_XDS_SOTW", kind)
	}
	v.refuse(v.text("BACKEND_TYPE", "redis") != "redis", "BACKEND_TYPE is %q, and weir keeps states in memory or in Redis", get("BACKEND_TYPE"))
	e.folder(v)
	e.ports(v)
	e.tls(v)
	e.traces(v)
	e.log(v)
	e.redis(v)
	e.Unused = append(e.Unused, v.unused()...)
	return e, errors.Join(v.problems...)
}

// folder reads where the files are. With a control plane there are none.
func (e *Environment) folder(v *variables) {
	if e.ControlPlane != nil {
		return
	}
	if v.get("RUNTIME_ROOT") != "" || v.get("RUNTIME_SUBDIRECTORY") != "" || v.get("RUNTIME_APPDIRECTORY") != "" {
		e.Flags["config"] = filepath.Join(v.text("RUNTIME_ROOT", "/srv/runtime_data/current"), v.get("RUNTIME_SUBDIRECTORY"), v.text("RUNTIME_APPDIRECTORY", "config"))
	}
}

// ports reads the addresses, and the age of connections.
func (e *Environment) ports(v *variables) {
	host := "127.0.0.1"
	if v.inPlace {
		host = ""
		e.Debug = net.JoinHostPort(v.text("DEBUG_HOST", "127.0.0.1"), v.text("DEBUG_PORT", "6070"))
	}
	e.Flags["grpc"] = net.JoinHostPort(v.text("GRPC_HOST", host), v.text("GRPC_PORT", "8081"))
	if path := v.get("GRPC_UDS"); path != "" {
		e.Flags["grpc"] = "unix:" + path
	}
	if v.inPlace || v.get("HOST") != "" || v.get("PORT") != "" {
		e.Flags["http"] = net.JoinHostPort(v.text("HOST", host), v.text("PORT", "8080"))
	}
	if v.flag("USE_PROMETHEUS") {
		e.Flags["metrics"] = v.text("PROMETHEUS_ADDR", net.JoinHostPort(host, "9090"))
	}
	if age := v.get("GRPC_MAX_CONNECTION_AGE"); age != "" {
		_, err := time.ParseDuration(age)
		v.refuse(err != nil, "GRPC_MAX_CONNECTION_AGE is %q, want a duration like 24h", age)
		e.Flags["grpc-max-age"] = age
	}
}

// traces reads where spans go. A collector of this machine is the default of OpenTelemetry.
func (e *Environment) traces(v *variables) {
	if v.flag("TRACING_ENABLED") {
		e.Flags["otlp"] = strings.TrimSuffix(v.text("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"), "/")
		e.Service = map[string]string{}
		for attribute, name := range map[string]string{"name": "TRACING_SERVICE_NAME", "namespace": "TRACING_SERVICE_NAMESPACE", "instance.id": "TRACING_SERVICE_INSTANCE_ID"} {
			if value := v.get(name); value != "" {
				e.Service["service."+attribute] = value
			}
		}
	}
}

// tls reads the certificates, which are for the port of Envoy.
func (e *Environment) tls(v *variables) {
	if !v.flag("GRPC_SERVER_USE_TLS") {
		return
	}
	for flag, name := range map[string]string{"tls-cert": "GRPC_SERVER_TLS_CERT", "tls-key": "GRPC_SERVER_TLS_KEY", "tls-client-ca": "GRPC_CLIENT_TLS_CACERT"} {
		if file := v.get(name); file != "" {
			e.Flags[flag] = file
		}
	}
	v.refuse(e.Flags["tls-cert"] == "" || e.Flags["tls-key"] == "", "GRPC_SERVER_USE_TLS is true, and GRPC_SERVER_TLS_CERT or GRPC_SERVER_TLS_KEY is missing")
	san := v.get("GRPC_CLIENT_TLS_SAN")
	v.refuse(san != "", "GRPC_CLIENT_TLS_SAN is %q, and weir reads who may come in from a file: leave it out, and name a file of --tokens with the line: envoy dns:%s take", san, san)
}

// levels are those of logs that have another name here.
var levels = map[string]string{"trace": "debug", "warning": "warn", "fatal": "error", "panic": "error"}

// log reads how the log is written.
func (e *Environment) log(v *variables) {
	if level := strings.ToLower(v.get("LOG_LEVEL")); level != "" {
		e.Flags["log-level"] = cmp.Or(levels[level], level)
	}
	if format := v.get("LOG_FORMAT"); format != "" {
		e.Flags["log-format"] = format
	}
}
