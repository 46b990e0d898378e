package rules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// requirements lists the direct dependencies that the go.mod of each module may name. The root has none.
var requirements = map[string]reasons{
	".": {},
	"bench": {
		modulePath:                                     "it is compared",
		modulePath + "/redislimit":                     "it is compared",
		modulePath + "/grpclimit":                      "it is measured",
		"google.golang.org/grpc":                       "it calls the interceptors that are measured, and asks the daemon like Envoy",
		"github.com/envoyproxy/go-control-plane/envoy": "it asks the daemon like Envoy",
		"google.golang.org/protobuf":                   "answers of an echo",
		"github.com/RussellLuo/slidingwindow":          "rival",
		"github.com/anishathalye/porcupine":            "histories are linearizable",
		"github.com/didip/tollbooth/v7":                "rival",
		"github.com/failsafe-go/failsafe-go":           "rival",
		"github.com/go-chi/httprate":                   "rival",
		"github.com/go-redis/redis_rate/v10":           "rival",
		"github.com/juju/ratelimit":                    "rival",
		"github.com/redis/go-redis/v9":                 "the client of the rivals for Redis",
		"github.com/redis/rueidis":                     "a bare script through it is compared",
		"github.com/sethvargo/go-limiter":              "rival",
		"github.com/throttled/throttled/v2":            "rival",
		"github.com/ulule/limiter/v3":                  "rival",
		"go.uber.org/ratelimit":                        "rival",
		"golang.org/x/time":                            "rival",
	},
	"cmd/weir": {
		modulePath:                                     "the library it serves",
		modulePath + "/redislimit":                     "weir serve --engine",
		modulePath + "/fetch":                          "weir fetch",
		modulePath + "/promlimit":                      "metrics of decisions",
		"github.com/prometheus/client_golang":          "/metrics of weir serve",
		"github.com/go-json-experiment/json":           "requests are read token by token",
		"github.com/goccy/go-yaml":                     "rules files",
		"github.com/fsnotify/fsnotify":                 "rules files that change",
		"github.com/santhosh-tekuri/jsonschema/v6":     "the schema of rules files is tested",
		"github.com/redis/go-redis/v9":                 "tests: Redis clients ask the daemon",
		"github.com/redis/rueidis":                     "overrides of weir ctl in Redis; tests: Redis clients ask the daemon",
		"github.com/rogpeppe/go-internal":              "script tests",
		"github.com/go-sql-driver/mysql":               "weir serve --engine mysql://",
		"github.com/jackc/pgx/v5":                      "weir serve --engine postgres://",
		"modernc.org/sqlite":                           "weir serve --engine sqlite:",
		"github.com/spf13/cobra":                       "command line",
		"github.com/spf13/pflag":                       "cobra's flags",
		"github.com/coreos/go-systemd/v22":             "sockets and notifications of systemd",
		"github.com/vbauerster/mpb/v8":                 "progress bars",
		"github.com/envoyproxy/go-control-plane/envoy": "weir serve --grpc",
		"google.golang.org/grpc":                       "weir serve --grpc",
		"google.golang.org/protobuf":                   "weir serve --grpc",
		"golang.org/x/net":                             "connections of weir serve --grpc are bounded",
		"golang.org/x/crypto/x509roots/fallback":       "certificates of the container image",
	},
	"examples": {
		modulePath:                 "they show it",
		modulePath + "/fetch":      "a crawler",
		modulePath + "/redislimit": "workers, replicas and recipes on many machines",
		"github.com/go-chi/chi/v5": "limits with this router",
		"github.com/redis/rueidis": "the client of the engine and of recipes",
	},
	"fetch": {
		modulePath:         "the library that it paces with",
		"golang.org/x/net": "HTML, public suffixes, and hosts in ASCII",
	},
	"grpclimit": {
		modulePath: "the library it puts in front of calls",
		"google.golang.org/genproto/googleapis/rpc": "RetryInfo and QuotaFailure",
		"google.golang.org/grpc":                    "it has interceptors for it",
		"google.golang.org/protobuf":                "messages of the details",
	},
	"otellimit": {
		modulePath:                            "it observes engines",
		"go.opentelemetry.io/otel":            "the global providers, attributes and codes",
		"go.opentelemetry.io/otel/metric":     "its instruments",
		"go.opentelemetry.io/otel/trace":      "its spans",
		"go.opentelemetry.io/otel/sdk":        "tests read spans",
		"go.opentelemetry.io/otel/sdk/metric": "tests read metrics",
	},
	"promlimit": {
		modulePath:                            "it observes engines",
		"github.com/prometheus/client_golang": "its collectors",
	},
	"sqllimit/drivertest": {
		modulePath:                       "it is tested",
		"github.com/go-sql-driver/mysql": "a driver of MariaDB and MySQL",
		"github.com/jackc/pgx/v5":        "a driver of PostgreSQL",
		"github.com/lib/pq":              "a driver of PostgreSQL",
		"github.com/mattn/go-sqlite3":    "a driver of SQLite in C",
		"modernc.org/sqlite":             "a driver of SQLite in Go",
	},
	"redislimit": {
		modulePath:                 "the library it is an engine of",
		"github.com/redis/rueidis": "the client for Redis and Valkey",
	},
}

func TestModulesRequireOnlyWhatIsListed(t *testing.T) {
	for _, dir := range modules(t) {
		allowed, known := requirements[dir]
		if !known {
			t.Errorf("module %q is unknown: add it to requirements in modules_test.go and to docs/develop/dependencies.md", dir)
			continue
		}
		for _, required := range directRequirements(t, dir) {
			if allowed[required] == "" {
				t.Errorf("%s/go.mod requires %q: if it must, add it with its reason to requirements in modules_test.go and to docs/develop/dependencies.md", dir, required)
			}
		}
	}
}

func TestRootModuleRequiresNothing(t *testing.T) {
	if got := directRequirements(t, "."); len(got) != 0 {
		t.Errorf("go.mod of the root requires %q, want nothing: users of the library pay for no dependency", got)
	}
	if _, err := os.Stat("go.sum"); err == nil {
		t.Error("the root has a go.sum, want none: it requires nothing")
	}
}

// modules returns the folders that go.work uses.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	var work struct{ Use []struct{ DiskPath string } }
	readFile(t, "go.work") // so that the go command knows that the result depends on it
	goJSON(t, &work, "work", "edit", "-json")
	for _, use := range work.Use {
		dirs = append(dirs, strings.TrimPrefix(use.DiskPath, "./"))
	}
	return dirs
}

// directRequirements returns the requirements of the go.mod in dir that are not indirect.
func directRequirements(t *testing.T, dir string) (paths []string) {
	t.Helper()
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	readFile(t, filepath.Join(dir, "go.mod"))
	goJSON(t, &mod, "mod", "edit", "-json", filepath.Join(dir, "go.mod"))
	for _, required := range mod.Require {
		if !required.Indirect {
			paths = append(paths, required.Path)
		}
	}
	return paths
}

func goJSON(t *testing.T, into any, arguments ...string) {
	t.Helper()
	inRoot()
	out, err := exec.Command("go", arguments...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(arguments, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("go %s: %v", strings.Join(arguments, " "), err)
	}
}
