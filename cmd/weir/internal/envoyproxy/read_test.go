package envoyproxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

func TestFilesWithErrorsSayWhereAndWhat(t *testing.T) {
	for file, want := range map[string]string{
		"descriptors:\n": "f.yaml:1:1: the domain is missing",
		"domain: d\ndescriptors:\n  - value: v\n":                                                                                         "f.yaml:3:5: the descriptor has no key",
		"domain: d\ndescriptors:\n  - key: a\n    ratelimit: {unit: day, requests_per_unit: 5}\n":                                         `f.yaml:4:5: the key "ratelimit" is unknown, want one of domain, key, `,
		"domain: d\ndescriptors:\n  - key: a\n    rate_limit: {unit: fortnight, requests_per_unit: 5}\n":                                  `the unit "fortnight" of rate_limit is none of second, minute, `,
		"domain: d\ndescriptors:\n  - key: a\n    rate_limit: {unlimited: true, unit: day}\n":                                             "rate_limit has a unit and is unlimited",
		"domain: d\ndescriptors:\n  - key: a\n    value: v\n  - key: a\n    value: v\n":                                                   "f.yaml:5:5: the descriptor d.a_v is given twice",
		"domain: d\ndescriptors:\n  - a\n":                                                                                                "f.yaml:3:5: is ",
		"domain: d\ndescriptors:\n  - {key: a, rate_limit: {unit: day, requests_per_unit: -1}}\n":                                         "want a whole number between 0 and 4294967295",
		"domain: d\ndescriptors:\n  - {key: a, share_threshold: true}\n":                                                                  "share_threshold needs a value with a star",
		"domain: d\ndescriptors:\n  - {key: a*}\n":                                                                                        `the key "a*" ends with a star and has no value, and only values are patterns`,
		"domain: d\ndescriptors:\n  - {key: a, rate_limit: {unit: day, name: n, replaces: [{name: n}]}}\n":                                "replaces names the limit itself",
		"domain: d\ndescriptors:\n  - {key: a, rate_limit: {unit: day, replaces: [{name:}]}}\n":                                           "replaces has no name",
		"domain: d\ndescriptors:\n  - {key: a, rate_limit: {unit: day}, weir: {limt: 5/m}}\n":                                             `the key "limt" of weir is unknown, want limit, all_or_nothing or on_failure`,
		"domain: d\ndescriptors:\n  - {key: a, rate_limit: {unlimited: true}, weir: {limit: 5/m}}\n":                                      "is the limit of a rate_limit that is unlimited",
		"domain: d\ndescriptors:\n  - {key: a, rate_limit: {unit: day}, weir: {limit: leaky bucket 1/s queue 5, all_or_nothing: true}}\n": "stands alone, and all_or_nothing takes from several limits at once",
		"domain: d\ndescriptors:\n  - {key: a, weir: {all_or_nothing: true}}\n":                                                           "weir belongs to a rate_limit, and the descriptor has none",
		"domain: d\ndescriptors:\n  - key: a\n    rate_limit:\n      unit: day\n      requests_per_unit: 2000000000\n":                    "f.yaml:6:26: ",
	} {
		engine := weir.NewMemory(weir.MemoryOptions{})
		_, err := Parser(Settings{}, &Stats{})(rules.Options{Check: func(rules ...*weir.Rule) error {
			if weir.Describe(rules[0].Limits()[0]).Capacity > 1_000_000_000 { // as Redis does
				return &weir.LimitError{Limit: rules[0].String(), Field: "rate", Reason: "is above 1000000000"}
			}
			return engine.Check(rules...)
		}}, rules.File{Name: "f.yaml", Content: []byte(file)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", file, err, want)
		}
	}
}

// A file of two kilobytes may stand for a billion descriptors.
func TestAliasesThatDoubleAreRefused(t *testing.T) {
	text := "domain: d\ndescriptors:\n- &a0 {key: a0}\n"
	for i := 1; i < 30; i++ {
		text += fmt.Sprintf("- &a%d {key: a%d, descriptors: [*a%d, {key: z, descriptors: [*a%d]}]}\n", i, i, i-1, i-1)
	}
	_, err := Parser(Settings{}, &Stats{})(rules.Options{}, rules.File{Name: "f.yaml", Content: []byte(text)})
	if err == nil || !strings.Contains(err.Error(), "brings the values of all files to more than 500000, with those that aliases repeat") {
		t.Errorf("got %v, want an error", err)
	}
}

func TestFilesMayUseAnchorsAndMergeDomains(t *testing.T) {
	files := []rules.File{
		{Name: "a.yaml", Content: []byte("---\ndomain: d\ndescriptors:\n  - key: a\n    rate_limit: &five {unit: day, requests_per_unit: 5}\n  - key: b\n    rate_limit: *five\n    unit: day\n  - key: z\n    shadow_mode: yes\n")},
		{Name: "b.yaml", Content: []byte("domain: d\ndescriptors:\n  - key: c\n    shadow_mode: yes\n    rate_limit: {unit: DAY, requests_per_unit: 5}\n")},
	}
	if _, err := Parser(Settings{}, &Stats{})(rules.Options{}, files...); err == nil || !strings.Contains(err.Error(), `b.yaml:1:9: the domain "d" is in a.yaml, too; MERGE_DOMAIN_CONFIG=true merges them`) {
		t.Errorf("got %v, want an error about the domain", err)
	}
	config, err := Parser(Settings{MergeDomains: true}, &Stats{})(rules.Options{}, files...)
	if err != nil {
		t.Fatal(err)
	}
	foreign := config.Foreign.(*Config)
	if len(foreign.Limits) != 3 || !foreign.Limits[2].Shadow || len(config.Named()) != 3 || config.Rule("d.b") == nil {
		t.Errorf("got limits %v, want those of a, b and c", config.Named())
	}
	want := []string{"a.yaml:8: unit has no meaning in a descriptor", "a.yaml:10: shadow_mode has no meaning in a descriptor without rate_limit"}
	if got := notesOf(foreign); !slices.Equal(got, want) {
		t.Errorf("got notes %q, want %q", got, want)
	}
}

func TestTheEnvironmentSetsFlags(t *testing.T) {
	for environment, want := range map[string]string{
		"":                                       "grpc=127.0.0.1:8081",
		"GRPC_HOST=0.0.0.0 GRPC_PORT=9":          "grpc=0.0.0.0:9",
		"GRPC_UDS=/run/rl.sock":                  "grpc=unix:/run/rl.sock",
		"HOST=::1 PORT=7":                        "http=[::1]:7",
		"RUNTIME_SUBDIRECTORY=ratelimit":         "config=/srv/runtime_data/current/ratelimit/config",
		"RUNTIME_ROOT=/r RUNTIME_APPDIRECTORY=c": "config=/r/c",
		"USE_PROMETHEUS=true":                    "metrics=127.0.0.1:9090",
		"GRPC_MAX_CONNECTION_AGE=1h":             "grpc-max-age=1h",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=h:1":    "engine=redis://h:1",
		"REDIS_URL=/run/redis.sock":              "engine=unix:///run/redis.sock",
		"REDIS_TYPE=CLUSTER REDIS_URL=a:1,b:2 REDIS_TLS=true REDIS_AUTH=x":                                                        "engine=rediss-cluster://a:1,b:2?password_env=REDIS_AUTH",
		"REDIS_TYPE=SENTINEL REDIS_URL=m,a:1,b:2":                                                                                 "engine=redis-sentinel://a:1,b:2/m",
		"REDIS_URL=h:1 REDIS_SOCKET_TYPE=tcp REDIS_AUTH=me@x:p:w CACHE_KEY_PREFIX=a&b":                                            "engine=redis://me@x@h:1?password_env=REDIS_AUTH&prefix=a%26b",
		"REDIS_TYPE=SENTINEL REDIS_URL=m,a:1 REDIS_SENTINEL_AUTH=s:p":                                                             "engine=redis-sentinel://a:1/m?sentinel_password_env=REDIS_SENTINEL_AUTH&sentinel_username=s",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=h:1 REDIS_TLS=true REDIS_TLS_CACERT=/a REDIS_TLS_CLIENT_CERT=/b REDIS_TLS_CLIENT_KEY=/c": "engine=rediss://h:1?ca=%2Fa&cert=%2Fb&key=%2Fc",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=h:1 REDIS_TLS_CACERT=/a":                                                                 "engine=redis://h:1",
		"GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=/a GRPC_SERVER_TLS_KEY=/b GRPC_CLIENT_TLS_CACERT=/c":                       "tls-client-ca=/c",
		"GRPC_SERVER_TLS_CERT=/a GRPC_SERVER_TLS_KEY=/b":                                                                          "tls-cert=",
		"GRPC_SERVER_USE_TLS=true":                        "GRPC_SERVER_USE_TLS is true, and GRPC_SERVER_TLS_CERT or GRPC_SERVER_TLS_KEY is missing",
		"LOG_LEVEL=WARNING":                               "log-level=warn",
		"LOG_LEVEL=Info LOG_FORMAT=json":                  "log-format=json",
		"CONFIG_TYPE=ETCD":                                `CONFIG_TYPE is "ETCD", want FILE or GRPC_XDS_SOTW`,
		"BACKEND_TYPE=memcache":                           `BACKEND_TYPE is "memcache", and weir keeps states in memory or in Redis`,
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=rediss://h:1":    "engine=rediss://h:1",
		"REDIS_SOCKET_TYPE=udp REDIS_URL=h:1":             `REDIS_SOCKET_TYPE is "udp", want unix or tcp`,
		"REDIS_URL=h:1":                                   "REDIS_URL is no path, and REDIS_SOCKET_TYPE is unix, as it is by default: set REDIS_SOCKET_TYPE=tcp for a server at HOST:PORT",
		"REDIS_URL=h:1 REDIS_TLS=true":                    "REDIS_TLS is true, and REDIS_SOCKET_TYPE is unix, where weir speaks no TLS: set REDIS_SOCKET_TYPE=tcp for a server at HOST:PORT",
		"REDIS_URL=/s REDIS_STARTUP_MAX_ELAPSED_TIME=30s": "engine-wait=30s",
		"REDIS_URL=/s REDIS_STARTUP_MAX_ELAPSED_TIME=0":   "engine-wait=",
		"REDIS_URL=/s REDIS_STARTUP_MAX_ELAPSED_TIME=5":   `REDIS_STARTUP_MAX_ELAPSED_TIME is "5", want a duration like 30s`,
		"SHADOW_MODE=maybe":                               `SHADOW_MODE is "maybe", want true or false`,
	} {
		set := map[string]string{}
		for _, word := range strings.Fields(environment) {
			name, value, _ := strings.Cut(word, "=")
			set[name] = value
		}
		read, err := Read(func(name string) string { return set[name] }, false)
		got := ""
		if flag, _, ok := strings.Cut(want, "="); ok && err == nil {
			got = flag + "=" + read.Flags[flag]
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", environment, got, want)
		}
		if _, password, both := strings.Cut(set["REDIS_AUTH"], ":"); read.Passwords["REDIS_AUTH"] != password && both {
			t.Errorf("%s: got the password %q", environment, read.Passwords["REDIS_AUTH"])
		}
	}
	if _, err := Read(func(name string) string {
		return map[string]string{"GRPC_SERVER_USE_TLS": "true", "GRPC_SERVER_TLS_CERT": "c", "GRPC_SERVER_TLS_KEY": "k", "GRPC_CLIENT_TLS_SAN": "e.example"}[name]
	}, false); err == nil || !strings.HasPrefix(err.Error(), `GRPC_CLIENT_TLS_SAN is "e.example", and `) {
		t.Errorf("a name that certificates must have: got %v, want an error", err)
	}
}

func notesOf(c *Config) (notes []string) {
	for _, n := range c.Notes {
		notes = append(notes, n.String())
	}
	return notes
}

func TestWhatFilesSayWithoutEffectIsNoted(t *testing.T) {
	c, err := parsed(`domain: d
descriptors:
  - {key: a, quota_mode: yes, detailed_metric: yes, metadata: {a: 1}, shadow_mode: no}
  - {key: b, rate_limit: {unit: day}}
  - {key: c, value: "x*", rate_limit: {unit: day, requests_per_unit: 1, name: n}}
  - {key: c, value: "x*y*", rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: n}, {name: m}]}}
  - {key: c, value: "y*x", rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: d, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: e, rate_limit: {unlimited: yes, requests_per_unit: 5}}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"f.yaml:3: detailed_metric has no meaning in a descriptor without rate_limit",
		"f.yaml:3: metadata has no meaning in a descriptor without rate_limit",
		"f.yaml:3: quota_mode has no meaning in a descriptor without rate_limit",
		"f.yaml:4: rate_limit has no requests_per_unit, so it refuses everything",
		`f.yaml:6: no value reaches "x*y*": the pattern "x*" comes first`,
		"f.yaml:9: requests_per_unit has no meaning in a rate_limit that is unlimited",
		`f.yaml:6: replaces names "m", and no limit has this name`,
	}
	if got := notesOf(c); !slices.Equal(got, want) {
		t.Errorf("got notes %q, want %q", got, want)
	}
	if c, err = parsed("domain: d\n"); err != nil || !slices.Equal(notesOf(c), []string{`f.yaml:1: the domain "d" has no descriptors, so it limits nothing`}) {
		t.Errorf("a domain alone: got notes %q, %v", notesOf(c), err)
	}
}

func TestMetadataMayHaveAliasesAndMerges(t *testing.T) {
	c, err := parsed("domain: d\ndescriptors:\n- {key: a, metadata: &m {n: 010, on: yes, quoted: \"yes\", list: [a, 1.5, ~], in: {x: y}}, rate_limit: {unit: day, requests_per_unit: 1}}\n" +
		"- {key: b, metadata: {<<: *m, n: 2, in: *m}, rate_limit: {unit: day, requests_per_unit: 1}}\n")
	if err == nil {
		t.Fatalf("got %v, want an error for a mapping in both places", c)
	}
	c, err = parsed("domain: d\ndescriptors:\n- {key: a, metadata: &m {n: 010, on: yes, quoted: \"yes\", list: [a, 1.5, ~]}, rate_limit: {unit: day, requests_per_unit: 1}}\n" +
		"- {key: b, metadata: {<<: *m, n: 2, in: *m}, rate_limit: {unit: day, requests_per_unit: 1}}\n")
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]any{"n": 8.0, "on": true, "quoted": "yes", "list": []any{"a", 1.5, nil}}
	want := map[string]any{"n": 2.0, "on": true, "quoted": "yes", "list": []any{"a", 1.5, nil}, "in": first}
	if got := c.domains["d"].any["b"].metadata.AsMap(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestVariablesWithoutEffectAreNamed(t *testing.T) {
	for environment, want := range map[string][]string{
		"REDIS_PERSECOND=true":                 {"REDIS_PERSECOND=true: limits by the second are in the Redis of the others"},
		"REDIS_AUTH=secret REDIS_TYPE=CLUSTER": {"REDIS_TYPE without REDIS_URL: states are where --engine says, in memory by default", "REDIS_AUTH without REDIS_URL: states are where --engine says, in memory by default"},
		"REDIS_PERSECOND=false PROMETHEUS_PATH=/metrics LOCAL_CACHE_SIZE_IN_BYTES=5":                nil,
		"REDIS_TIMEOUT=1s REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=True TRACING_EXPORTER_PROTOCOL=grpc": {"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=True: the name in the certificate of Redis is verified", "REDIS_TIMEOUT=1s: --deadline bounds a decision, 15ms by default", "TRACING_EXPORTER_PROTOCOL=grpc: spans are sent by OTLP over HTTP"},
	} {
		read, err := Read(func(name string) string {
			for word := range strings.FieldsSeq(environment) {
				if given, value, _ := strings.Cut(word, "="); given == name {
					return value
				}
			}
			return ""
		}, false)
		if err != nil || !slices.Equal(read.Unused, want) {
			t.Errorf("%s: got %q, %v, want %q", environment, read.Unused, err, want)
		}
	}
}

// Envoy does not release slots, so they come back with a lease.
func TestSlotsHaveALease(t *testing.T) {
	c, err := parsed("domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: day}, weir: {limit: concurrency 2}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Limits[0].Rule.String(); got != "d.a=concurrency 2 lease 1m" {
		t.Errorf("got %s, want a lease", got)
	}
}

// A file may have a number that only means no limit. It is no reason to refuse the file.
func TestANumberAboveTheLargestRateIsHeldAsThat(t *testing.T) {
	c, err := parsed("domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: second, requests_per_unit: 4294967295}}\n- {key: b, rate_limit: {unit: minute, requests_per_unit: 4294967295}}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"f.yaml:3: requests_per_unit 4294967295 is held as 1000000000, the largest rate, which is unlimited in effect"}
	if got := notesOf(c); !slices.Equal(got, want) {
		t.Errorf("got notes %q, want %q", got, want)
	}
	for i, limit := range []string{"fixed window 1000000000/s", "fixed window 4294967295/m"} {
		if got := c.Limits[i].Rule.Limits()[0].String(); got != limit || c.Limits[i].Shown.RequestsPerUnit != 4294967295 {
			t.Errorf("got %s, shown as %d; want %s, shown as 4294967295", got, c.Limits[i].Shown.RequestsPerUnit, limit)
		}
	}
}
