package rules

// adapterRules lists the packages that put the library behind a protocol or in front of a server.
var adapterRules = map[string]packageRule{
	"front": {
		imports: reasons{
			".":     "its engines decide on requests under its rules",
			"layer": "an engine on a network may be away",
			"pace":  "held requests wait in its queue",
		},
	},
	"httplimit": {
		imports: reasons{
			".":                           "its engines decide on requests under its rules",
			"front":                       "rules and decisions are those of every front",
			"layer":                       "its options are those of the layers around an engine",
			"pace":                        "the requests of its Transport wait in its queue",
			"httplimit/internal/announce": "its Transport reads what servers say about their limits",
			"httplimit/internal/obey":     "its Transport obeys that",
			"internal/duration":           "errors of its Transport name durations",
		},
		testImports: reasons{
			"internal/layertest":      "engines of tests have empty functions around them",
			"httplimit/httplimittest": "its tests move a clock, as its users' tests do",
			"internal/gatewaytest":    "real proxies pass the address of a client on",
			"internal/testprocess":    "ports for the proxies",
		},
	},
	"httplimit/internal/announce": {},
	"httplimit/internal/obey": {
		imports: reasons{"httplimit/internal/announce": "it learns from announcements"},
	},
	"httplimit/httplimittest": {
		imports:     reasons{".": "its clock makes an engine"},
		testImports: reasons{"httplimit": "it tests handlers that are limited"},
	},
	"grpclimit": {
		imports: reasons{
			".":                               "calls take what rules say from its engines",
			"front":                           "rules and decisions are those of every front",
			"layer":                           "its options are those of the layers around an engine",
			"pace":                            "the calls of a client wait in its queue",
			"httplimit":                       "it finds clients behind trusted proxies",
			"google.golang.org/grpc":          "it has interceptors for it",
			"google.golang.org/grpc/codes":    "refusals have a code",
			"google.golang.org/grpc/status":   "refusals have details",
			"google.golang.org/grpc/peer":     "the address of a client is a key",
			"google.golang.org/grpc/metadata": "fields of metadata are keys",
			"google.golang.org/genproto/googleapis/rpc/errdetails": "RetryInfo and QuotaFailure",
			"google.golang.org/protobuf/protoadapt":                "details are messages",
			"google.golang.org/protobuf/types/known/durationpb":    "the delay of RetryInfo",
		},
		testImports: reasons{
			"httplimit/httplimittest":                     "its tests move a clock",
			"internal/layertest":                          "engines of tests have empty functions around them",
			"google.golang.org/grpc/credentials/insecure": "connections on the loopback interface",
			"google.golang.org/grpc/interop/grpc_testing": "a service with calls and streams of each kind",
		},
	},
	"redislimit": {
		imports: reasons{
			".":                        "it is an engine",
			"github.com/redis/rueidis": "it speaks to Redis",
			"enginekit":                "requests, rules and answers are those of every engine",

			"redislimit/internal/fault":   "errors of calls",
			"redislimit/internal/stored":  "limits as Redis keeps them",
			"redislimit/internal/wire":    "decisions of the script",
			"redislimit/internal/calls":   "it makes decisions by shared calls",
			"redislimit/internal/servers": "it reaches servers",
			"redislimit/internal/slots":   "leases of reservations are renewed",
		},
		testImports: reasons{
			"internal/waittest":       "the promises of waiting are one suite for every engine",
			"httplimit":               "two web servers share a limit",
			"httplimit/httplimittest": "its tests move a clock",
			"limittest":               "the suite tests every engine",
			"internal/redistest":      "tests ask real servers",
			"layer":                   "layers stand over it while servers fail",
			"internal/testprocess":    "workers of several processes wait for one limit",
			"pace":                    "callers of several processes wait for one limit",
		},
	},
	"sqllimit": {
		imports: reasons{".": "it is an engine", "enginekit": "its table is a store"},
	},
	"sqllimit/drivertest": {
		testImports: reasons{
			".":                              "tests ask the engine",
			"enginekit":                      "options of the engine",
			"internal/sqltest":               "tests ask real servers",
			"limittest":                      "the suite tests every engine",
			"pace":                           "queues wait in the lines of a database",
			"sqllimit":                       "it is tested",
			"github.com/go-sql-driver/mysql": "a driver",
			"github.com/jackc/pgx/v5":        "a driver, whose connections a test cuts",
			"github.com/jackc/pgx/v5/stdlib": "a driver",
			"github.com/lib/pq":              "a driver",
			"github.com/mattn/go-sqlite3":    "a driver",
			"modernc.org/sqlite":             "a driver",
		},
	},
	"redislimit/internal/fault": {
		imports: reasons{".": "an error says whether something was counted", "github.com/redis/rueidis": "it reads error replies"},
	},
	"redislimit/internal/stored": {
		imports: reasons{
			".":                        "it keeps its limits",
			"enginekit":                "limits have functions, and states have names",
			"github.com/redis/rueidis": "a key is made without a copy",
		},
	},
	"redislimit/internal/wire": {
		imports: reasons{
			".":                          "answers are those of every engine",
			"enginekit":                  "states are measured by their functions",
			"redislimit/internal/fault":  "values may be unreadable",
			"redislimit/internal/stored": "decisions are about limits",
		},
	},
	"redislimit/internal/calls": {
		imports: reasons{
			".":                          "it composes answers",
			"enginekit":                  "it composes answers of measurements",
			"redislimit/internal/fault":  "calls fail",
			"redislimit/internal/stored": "keys have lanes, and limits have work",
			"redislimit/internal/wire":   "calls have decisions",
			"github.com/redis/rueidis":   "arguments are sent without a copy",
		},
		testImports: reasons{"internal/redistest": "tests ask real servers"},
	},
	"redislimit/internal/servers": {
		imports: reasons{
			"redislimit/internal/fault": "servers do not answer, or refuse",
			"redislimit/internal/wire":  "it calls the script",
			"github.com/redis/rueidis":  "it is the client",
		},
	},
	"redislimit/internal/slots": {
		imports: reasons{
			"redislimit/internal/calls":  "renewals and releases are decisions that share calls",
			"redislimit/internal/fault":  "an engine is closed",
			"redislimit/internal/stored": "leases have lengths",
			"redislimit/internal/wire":   "slots are parts of decisions",
		},
	},
	"promlimit": {
		imports: reasons{
			".":     "it observes engines",
			"layer": "decisions are reported by it, and its layers have counts",
			"github.com/prometheus/client_golang/prometheus": "its collectors",
		},
		testImports: reasons{"github.com/prometheus/client_golang/prometheus/testutil": "it reads a registry"},
	},
	"otellimit": {
		imports: reasons{
			".":                                  "it observes engines",
			"layer":                              "decisions are reported by it",
			"go.opentelemetry.io/otel":           "the global providers",
			"go.opentelemetry.io/otel/attribute": "rules and results are attributes",
			"go.opentelemetry.io/otel/codes":     "a failed decision is a span in error",
			"go.opentelemetry.io/otel/metric":    "its instruments",
			"go.opentelemetry.io/otel/trace":     "its spans",
		},
		testImports: reasons{
			"go.opentelemetry.io/otel/sdk/metric":            "metrics are read",
			"go.opentelemetry.io/otel/sdk/metric/metricdata": "metrics are read",
			"go.opentelemetry.io/otel/sdk/trace":             "spans are read",
			"go.opentelemetry.io/otel/sdk/trace/tracetest":   "spans are read",
		},
	},
	"redislimit/recipes": {
		imports: reasons{"github.com/redis/rueidis": "it speaks to Redis"},
		testImports: reasons{
			"internal/redistest": "tests ask real servers",
			"redislimit":         "a benchmark compares the recipes with the engine",
			".":                  "and makes its rules",
		},
	},
}
