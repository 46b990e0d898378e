package envoyproxy

import (
	"fmt"
	"strings"
)

// without are the variables whose effect Weir lacks, with the effect instead. A value that asks for nothing more than Weir
// does is left out of the warnings. Variables that tune envoyproxy/ratelimit without a change of answers are not here.
var without = []struct{ name, nothing, instead string }{
	{"REDIS_PERSECOND", "false", "limits by the second are in the Redis of the others"},
	{"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "false", "the name in the certificate of Redis is verified"},
	{"REDIS_TIMEOUT", "", "--deadline bounds a decision, 15ms by default"},
	{"USE_DOG_STATSD", "false", "metrics are not sent; --metrics offers them to Prometheus, and /stats shows the old names"},
	{"STATSD_HOST", "", "metrics are not sent; --metrics offers them to Prometheus, and /stats shows the old names"},
	{"EXTRA_TAGS", "", "metrics have no such tags"},
	{"PROMETHEUS_PATH", "/metrics", "metrics are at /metrics"},
	{"PROMETHEUS_MAPPER_YAML", "", "metrics have the names of Weir"},
	{"TRACING_EXPORTER_PROTOCOL", "http", "spans are sent by OTLP over HTTP"},
	{"TRACING_SAMPLING_RATE", "1", "spans are made for the calls of sampled traces"},
	{"GRPC_MAX_CONNECTION_AGE_GRACE", "", "--grace bounds calls in flight on a connection that has reached its age"},
}

// unused returns the variables that ask for something Weir lacks.
func (v *variables) unused() (list []string) {
	for _, w := range without {
		if value := v.get(w.name); value != "" && !strings.EqualFold(value, w.nothing) {
			list = append(list, fmt.Sprintf("%s=%s: %s", w.name, value, w.instead))
		}
	}
	for _, name := range []string{"DEBUG_HOST", "DEBUG_PORT"} {
		if value := v.get(name); value != "" && !v.inPlace {
			list = append(list, fmt.Sprintf("%s=%s: there is no debug port, except in a program called ratelimit; /stats is on the HTTP port, and profiles are on the admin port with --pprof", name, value))
		}
	}
	if v.text("CONFIG_TYPE", "FILE") == "FILE" && v.flag("FORCE_START_WITHOUT_INITIAL_CONFIG") {
		list = append(list, "FORCE_START_WITHOUT_INITIAL_CONFIG=true: the daemon does not start without rules in files")
	}
	return list
}
