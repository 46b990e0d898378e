package weir_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// This file holds the import rule of docs/architecture.md: arrows point to the
// root, adapters never import one another, and only cmd/weir reads flags,
// environment and files. A new package, edge, dependency or exception is one
// line in the tables below, with its reason.

const modulePath = "github.com/weirflow/weir"

// reasons gives the reason for each import path.
type reasons map[string]string

// packageRule lists the imports of one package besides the standard library. Import paths of ours are relative to the
// root, which is ".".
type packageRule struct {
	imports     reasons // in its own code, and so in its tests
	testImports reasons // in its tests alone
}

// packageRules lists every package of the project.
var packageRules = map[string]packageRule{
	".": {
		imports: reasons{
			"internal/algorithm": "limits compile to the four functions, and verbs decide with them",
			"internal/clock":     "every verb reads the time once",
			"internal/duration":  "texts and errors hold durations",
			"internal/line":      "callers of Limiter and Keyed wait in it",
			"internal/memory":    "Memory is its face",
			"internal/rule":      "a rule holds its compiled form, and requests are checked and merged in one place",
			"internal/scan":      "limits are read word by word",
			"internal/table":     "Keyed keeps its states in it",
			"internal/word":      "Limiter and Keyed decide on words without a lock",
		},
		testImports: reasons{
			"limittest": "the suite tests the memory engine, like every engine",
			"simulate":  "a limit that is registered can be replayed",
		},
	},
	"internal/algorithm": {},
	"internal/clock":     {},
	"internal/duration":  {},
	"internal/scan":      {},
	"internal/rule": {
		imports: reasons{
			"internal/algorithm": "the parts of a rule are its limits",
			"internal/table":     "it says how long a key may be",
		},
	},
	"internal/memory": {
		imports: reasons{
			"internal/algorithm": "it decides with the verbs of decide.go",
			"internal/clock":     "every verb reads the time once",
			"internal/rule":      "requests are of compiled rules",
			"internal/table":     "hashes of keys, and a directory of its cells",
			"internal/word":      "most states are words",
		},
	},
	"internal/line": {
		imports: reasons{
			"internal/algorithm": "a subject has the state of one limit",
			"internal/clock":     "a line sleeps until an instant",
		},
	},
	"internal/word": {
		imports: reasons{
			"internal/algorithm": "words are states of its limits",
			"internal/table":     "the words of many keys are in it",
		},
	},
	"internal/table": {},
	"pace": {
		imports: reasons{".": "calls and streams wait for turns of its limiters"},
	},
	"httplimit": {
		imports: reasons{
			".":                           "its engines decide on requests under its rules",
			"pace":                        "held requests wait in its queue",
			"httplimit/internal/announce": "its Transport reads what servers say about their limits",
			"httplimit/internal/obey":     "its Transport obeys that",
		},
		testImports: reasons{
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
			"google.golang.org/grpc/credentials/insecure": "connections on the loopback interface",
			"google.golang.org/grpc/interop/grpc_testing": "a service with calls and streams of each kind",
		},
	},
	"fetch": {
		imports: reasons{
			".":                             "rates, and the limiter of the total",
			"pace":                          "domains are flows that share the bandwidth",
			"httplimit":                     "its transport learns what servers announce",
			"golang.org/x/net/html":         "links of pages",
			"golang.org/x/net/html/atom":    "links of pages",
			"golang.org/x/net/idna":         "the ASCII form of a host",
			"golang.org/x/net/publicsuffix": "a pace is for a registrable domain",
		},
	},
	"examples/crawler": {
		imports: reasons{
			".":     "its rates",
			"fetch": "it shows it",
		},
	},
	"examples/obedient":        {imports: reasons{"httplimit": "it shows its Transport, and a middleware that this obeys"}},
	"examples/obedient/client": {imports: reasons{"examples/obedient": "it is its client"}},
	"examples/obedient/server": {imports: reasons{"examples/obedient": "it is its server"}},
	"examples/worker": {
		imports: reasons{
			".":          "the vendor's terms",
			"pace":       "its callers wait in a queue",
			"redislimit": "on one Redis",
		},
		testImports: reasons{"internal/redistest": "workers share a real server"},
	},
	"examples/routers": {
		imports: reasons{
			"httplimit":                "it shows its middlewares",
			"github.com/go-chi/chi/v5": "with this router",
		},
		testImports: reasons{"httplimit/httplimittest": "it tests limited handlers"},
	},
	"limittest": {
		imports:     reasons{".": "the suite asks an engine"},
		testImports: reasons{"internal/algorithm": "the vectors bind the pure functions too"},
	},
	"enginekit": {
		imports: reasons{
			".":                  "what it makes are engines",
			"internal/algorithm": "the verbs that decide calls",
			"internal/rule":      "requests are checked, merged and named in one place",
		},
		testImports: reasons{"limittest": "the engine of the example passes the suite"},
	},
	"simulate": {
		imports: reasons{".": "replay and driver ask the same engine and limits as production does"},
	},
	"redislimit": {
		imports: reasons{
			".":                        "it is an engine",
			"github.com/redis/rueidis": "it speaks to Redis",
			"enginekit":                "requests, rules and answers are those of every engine",
		},
		testImports: reasons{
			"httplimit":            "two web servers share a limit",
			"limittest":            "the suite tests every engine",
			"internal/redistest":   "tests ask real servers",
			"internal/testprocess": "workers of several processes wait for one limit",
			"pace":                 "callers of several processes wait for one limit",
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
	"internal/testprocess": {},
	"internal/redistest": {
		imports: reasons{"internal/testprocess": "its servers end with the test"},
	},
	"internal/gatewaytest": {
		imports: reasons{"internal/testprocess": "its gateways end with the test"},
	},
	"cmd/weir/internal/picture": {
		imports: reasons{
			"gonum.org/v1/plot":          "axes, legends and alignment",
			"gonum.org/v1/plot/font":     "the font of texts",
			"gonum.org/v1/plot/plotter":  "lines, areas, points",
			"gonum.org/v1/plot/vg":       "lengths",
			"gonum.org/v1/plot/vg/draw":  "the canvas",
			"gonum.org/v1/plot/vg/vgimg": "PNG files",
			"gonum.org/v1/plot/vg/vgsvg": "SVG files",
		},
	},
	"cmd/weir": {
		imports: reasons{
			".":                                    "it chooses the engine and makes the rules",
			"simulate":                             "weir replay",
			"redislimit":                           "weir serve --engine",
			"httplimit":                            "it finds the addresses of clients behind gateways",
			"cmd/weir/internal/api":                "weir serve",
			"cmd/weir/internal/filter":             "weir pace",
			"cmd/weir/internal/collect":            "weir fetch",
			"fetch":                                "weir fetch",
			"github.com/spf13/cobra":               "commands, flags, help and completion",
			"github.com/vbauerster/mpb/v8":         "progress on a terminal",
			"github.com/vbauerster/mpb/v8/decor":   "progress on a terminal",
			"github.com/vbauerster/mpb/v8/cwriter": "the width of a terminal",
			"cmd/weir/internal/picture":            "plots of simulations and replays",
		},
		testImports: reasons{
			"github.com/rogpeppe/go-internal/testscript": "script tests run the real main",
			"internal/redistest":                         "tests of weir serve --engine ask real servers",
			"internal/gatewaytest":                       "real gateways ask weir serve",
			"internal/testprocess":                       "ports for the gateways",
		},
	},
	"cmd/weir/internal/collect": {
		imports: reasons{"fetch": "it saves pages, and says which URLs are done"},
	},
	"cmd/weir/internal/filter": {
		imports: reasons{
			".":    "a filter writes the lines that the library admits",
			"pace": "lines wait in its queue for several limits, and for limits that pipes share",
		},
	},
	"cmd/weir/internal/api": {
		imports: reasons{
			".":         "it decodes a request, asks the engine, encodes the answer",
			"httplimit": "gateways get the status and the header fields that its middleware gives",
			"pace":      "callers wait in its queue",
			"github.com/go-json-experiment/json/jsontext": "requests are read token by token, and refused at the first wrong one",
		},
	},
	"bench/cmd/compare": {
		imports: reasons{
			"bench/internal/peers":    "it chooses the peers",
			"bench/internal/workload": "it chooses the mixes",
			"bench/internal/measure":  "it runs them",
			"bench/internal/report":   "it writes the results",
		},
	},
	"bench/cliffs": {
		imports: reasons{
			".":                         "whose decisions it measures",
			"bench/internal/workload":   "it draws the keys",
			"gonum.org/v1/plot":         "the plot",
			"gonum.org/v1/plot/plotter": "the plot",
			"gonum.org/v1/plot/vg":      "the plot",
		},
	},
	"bench/campaign": {
		imports: reasons{
			".":                        "rules of what it asks",
			"redislimit":               "it checks its promises",
			"internal/redistest":       "it breaks real servers",
			"github.com/redis/rueidis": "it damages the connections of its clients",
		},
		testImports: reasons{"internal/testprocess": "without redis-server a test is skipped"},
	},
	"bench/large": {
		imports: reasons{
			".":                       "whose memory it measures",
			"bench/internal/workload": "it makes the keys",
		},
	},
	"bench/hostile": {
		imports: reasons{
			".":    "it loads what daemons have saved, and shows faults of the library",
			"pace": "it shows faults of pacing",
		},
	},
	"bench/histories": {
		testImports: reasons{
			".":                                 "whose histories are judged",
			"github.com/anishathalye/porcupine": "it searches for an order that a model allows",
		},
	},
	"bench/middleware": {
		imports: reasons{
			"httplimit":                                             "it is compared",
			"grpclimit":                                             "its interceptor is measured",
			"google.golang.org/grpc":                                "the interceptor is called as it calls it",
			"google.golang.org/grpc/peer":                           "calls come from addresses",
			"github.com/didip/tollbooth/v7":                         "rival",
			"github.com/didip/tollbooth/v7/limiter":                 "rival",
			"github.com/go-chi/httprate":                            "rival",
			"github.com/sethvargo/go-limiter/httplimit":             "rival",
			"github.com/sethvargo/go-limiter/memorystore":           "rival",
			"github.com/throttled/throttled/v2":                     "rival",
			"github.com/throttled/throttled/v2/store/memstore":      "rival",
			"github.com/ulule/limiter/v3":                           "rival",
			"github.com/ulule/limiter/v3/drivers/middleware/stdlib": "rival",
			"github.com/ulule/limiter/v3/drivers/store/memory":      "rival",
		},
	},
	"bench/redis": {
		imports: reasons{
			".":                                  "rules of what is compared",
			"redislimit":                         "it is compared",
			"github.com/go-redis/redis_rate/v10": "rival",
			"github.com/redis/go-redis/v9":       "the client of the rivals, and a bare script through it",
			"github.com/redis/rueidis":           "a bare script through it",
			"github.com/throttled/throttled/v2":  "rival",
			"github.com/throttled/throttled/v2/store/goredisstore.v9": "rival",
			"github.com/ulule/limiter/v3":                             "rival",
			"github.com/ulule/limiter/v3/drivers/store/redis":         "rival",
		},
		testImports: reasons{
			"internal/redistest": "tests ask real servers",
			"limittest":          "an engine over go-redis passes it",
		},
	},
	"bench/replay": {},
	"bench/soak": {
		imports: reasons{".": "it drives the memory engine and keeps its own accounts"},
	},
	"bench/internal/peers": {
		imports: reasons{
			".":                                     "it is compared",
			"github.com/RussellLuo/slidingwindow":   "rival",
			"github.com/didip/tollbooth/v7/limiter": "rival",
			"github.com/failsafe-go/failsafe-go/ratelimiter":   "rival",
			"github.com/go-chi/httprate":                       "rival",
			"github.com/juju/ratelimit":                        "rival",
			"github.com/sethvargo/go-limiter":                  "rival",
			"github.com/sethvargo/go-limiter/memorystore":      "rival",
			"github.com/throttled/throttled/v2":                "rival",
			"github.com/throttled/throttled/v2/store/memstore": "rival",
			"github.com/ulule/limiter/v3":                      "rival",
			"github.com/ulule/limiter/v3/drivers/store/memory": "rival",
			"go.uber.org/ratelimit":                            "rival",
			"golang.org/x/time/rate":                           "rival",
		},
	},
	"bench/internal/workload": {
		imports: reasons{"bench/internal/peers": "a mix says what limit its peers hold"},
	},
	"bench/internal/measure": {
		imports: reasons{
			".":                       "how long its callers wait is measured",
			"bench/internal/peers":    "they are measured",
			"bench/internal/workload": "they are asked for its keys",
			"go.uber.org/ratelimit":   "how long its callers wait is measured",
			"golang.org/x/time/rate":  "how long its callers wait is measured",
		},
	},
	"bench/internal/report": {
		imports: reasons{
			"bench/internal/measure":    "it prints results",
			"bench/internal/peers":      "it names them",
			"gonum.org/v1/plot":         "the plot",
			"gonum.org/v1/plot/plotter": "the plot",
			"gonum.org/v1/plot/vg":      "the plot",
			"gonum.org/v1/plot/vg/draw": "the plot",
		},
		testImports: reasons{"bench/internal/workload": "results are of mixes"},
	},
}

// forbidden lists packages of the standard library that only some packages may import. Tests may import all of them.
// A pattern that ends in a slash covers everything below.
var forbidden = []struct {
	path   string
	why    string
	except reasons // packages that may, and why
}{
	{"flag", "only cmd/weir reads flags", reasons{"bench/campaign": "it is a program, too", "bench/cliffs": "it is a program, too", "bench/cmd/compare": "it is a program, too", "bench/hostile": "it is a program, too", "bench/large": "it is a program, too", "bench/middleware": "it is a program, too", "bench/redis": "it is a program, too", "bench/replay": "it is a program, too", "bench/soak": "it is a program, too"}},
	{"os", "only cmd/weir reads the environment and files", reasons{
		"examples/obedient/client":  "it is a program",
		"examples/obedient/server":  "it is a program",
		"examples/crawler":          "it is a program",
		"examples/worker":           "it is a program",
		"bench/campaign":            "it is a program",
		"bench/cliffs":              "it is a program",
		"bench/cmd/compare":         "it is a program",
		"bench/hostile":             "it is a program",
		"bench/large":               "it is a program",
		"bench/redis":               "it is a program",
		"bench/middleware":          "it is a program",
		"bench/replay":              "it is a program",
		"bench/soak":                "it is a program",
		"bench/internal/measure":    "it reads how much memory the process has",
		"cmd/weir":                  "it is the program",
		"cmd/weir/internal/collect": "it writes pages and their journal",
		"limittest":                 "WEIR_VECTORS names another folder of vectors",
		"internal/redistest":        "servers of tests have a configuration file each",
		"internal/gatewaytest":      "gateways of tests have a configuration file each",
		"internal/testprocess":      "CI says whether a missing program fails a test",
		"redislimit":                "a URL names where a password or certificate is",
	}},
	{"os/", "only cmd/weir starts and signals processes", reasons{"examples/obedient/client": "it ends when it is interrupted",
		"bench/cmd/compare":    "it asks git for the commit",
		"bench/campaign":       "it starts the processes that ask, and asks git for the commit",
		"bench/hostile":        "it starts and signals daemons, and asks git for the commit",
		"bench/redis":          "it starts the server, and asks git for the commit",
		"bench/middleware":     "it asks git for the commit",
		"bench/replay":         "it runs weir replay",
		"cmd/weir":             "it is the program",
		"internal/redistest":   "it starts the servers of tests",
		"internal/gatewaytest": "it starts the gateways of tests",
		"internal/testprocess": "it starts the programs of tests",
	}},
	{"log", "a library does not log; the program uses log/slog", reasons{}},
	{"log/slog", "a library does not log", reasons{"bench/middleware": "an option of what it compares is a logger", "httplimit": "likely mistakes in the configuration are logged once, where no call can return an error", "grpclimit": "a failing engine is logged, where no call can return an error", ".": "an option of the memory engine is a logger", "internal/memory": "it warns a given logger when keys find no room", "cmd/weir": "it is the program", "cmd/weir/internal/api": "a failing engine is logged where the request is known"}},
	{"math/rand", "a decision is a function of its inputs", reasons{}},
	{"math/rand/v2", "a decision is a function of its inputs", reasons{
		"bench/replay":            "clients of a made-up log are drawn",
		"pace":                    "callers of several processes spread their questions",
		"httplimit":               "the identity that slots are held by, and the spread of requests after a pause",
		"grpclimit":               "the identity that slots are held by, and the spread of calls after a pause",
		"bench/internal/workload": "keys are drawn",
		"bench/cliffs":            "rates are drawn",
		"bench/campaign":          "faults and calls are drawn",
		"bench/hostile":           "attacks and honest requests are drawn",
		"bench/redis":             "callers ask at random times",
		"bench/soak":              "rules, keys, verbs and steps are drawn",
		"redislimit":              "the identities of takes across lanes",
		".":                       "jitter of waiting callers, and the identity of a lease",
		"internal/memory":         "which decisions are samples",
		"internal/testprocess":    "where to look for a free port",
		"simulate":                "arrivals of made-up traffic are drawn, from a given seed",
	}},
	{"net/", "the core speaks no protocol", reasons{
		"examples/obedient":           "it shows a client and a server",
		"examples/obedient/client":    "it is a program",
		"examples/obedient/server":    "it is a program",
		"httplimit":                   "it is the HTTP middleware",
		"grpclimit":                   "addresses of clients",
		"examples/routers":            "it shows the HTTP middleware",
		"examples/crawler":            "its transport can be replaced",
		"examples/worker":             "it asks a vendor",
		"fetch":                       "it sends requests over HTTP",
		"httplimit/internal/announce": "it reads header fields",
		"httplimit/httplimittest":     "it sends requests to handlers under test",
		"bench/hostile":               "it asks daemons over HTTP",
		"bench/middleware":            "it compares HTTP middlewares",
		"cmd/weir":                    "it listens",
		"cmd/weir/internal/api":       "it is the HTTP front",
		"redislimit":                  "an engine can be named by a URL",
	}},
	{"net", "the core speaks no protocol", reasons{
		"examples/obedient/server": "it listens",
		"fetch":                    "it looks at the addresses that are dialed",
		"grpclimit":                "addresses of clients",
		"httplimit":                "a hijacked connection holds its slots",
		"bench/campaign":           "it damages connections",
		"bench/hostile":            "it asks daemons over connections of its own making",
		"bench/redis":              "it looks for a free port",
		"bench/middleware":         "requests come from addresses",
		"cmd/weir":                 "it listens",
		"redislimit":               "an engine can be named by a URL",
		"internal/redistest":       "it asks the servers of tests",
		"internal/gatewaytest":     "it waits until a gateway listens",
		"internal/testprocess":     "it looks for a free port",
	}},
	{"plugin", "nothing is loaded at run time", reasons{}},
	{"reflect", "limits and requests are plain values", reasons{}},
	{"testing", "production code does not link the test framework", reasons{
		"bench/campaign":          "the servers of internal/redistest belong to a test, or to what stands in for one",
		"httplimit/httplimittest": "it is for tests only",
		"limittest":               "it is a test suite",
		"internal/redistest":      "it is for tests only",
		"internal/gatewaytest":    "it is for tests only",
		"internal/testprocess":    "it is for tests only",
	}},
	{"unsafe", "a package that needs it says why", reasons{"internal/memory": "the address of a stack, as a number, distinguishes the goroutines that count"}},
}

// pure lists the only standard packages that internal/algorithm may import, so that no clock, lock, context, logger
// or I/O comes in.
var pure = reasons{
	"cmp":       "the order of leases",
	"math":      "constants of the integer types",
	"math/bits": "products and quotients of 128 bits",
	"slices":    "the leases of a concurrency limit",
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, imported := range f.imports {
			if broken := violation(f.pkg, f.test, imported); broken != "" {
				t.Errorf("%s: %s", f.path, broken)
			}
		}
	}
}

// Engines in other projects cannot import internal packages, so ours does not either.
func TestTheRedisEngineNeedsNothingInternal(t *testing.T) {
	for name := range packageRules["redislimit"].imports {
		if strings.Contains(name+"/", "internal/") {
			t.Errorf("redislimit may import %q: what it needs of it belongs in enginekit", name)
		}
	}
}

// violation names the broken rule, and where to change it, if a file of pkg (relative to the root) imports the path.
// It is empty if no rule is broken.
func violation(pkg string, test bool, imported string) string {
	rule, known := packageRules[pkg]
	switch {
	case !known:
		return fmt.Sprintf("package %q is unknown: add it to packageRules in architecture_test.go and to the table of docs/architecture.md", pkg)
	case isStandard(imported) && test:
		return ""
	case isStandard(imported):
		return standardViolation(pkg, imported)
	}
	name := relative(imported)
	ownTest := test && name == pkg // a test from outside sees the package as its callers do
	if ownTest || rule.imports[name] != "" || test && rule.testImports[name] != "" {
		return ""
	}
	return fmt.Sprintf("package %q may not import %q: if the edge points to the root and has a reason, add it to packageRules in architecture_test.go", pkg, name)
}

func standardViolation(pkg, imported string) string {
	if pkg == "internal/algorithm" && pure[imported] == "" {
		return fmt.Sprintf("internal/algorithm may not import %q: the four functions are pure; if it brings no clock, lock or I/O, add it to pure in architecture_test.go", imported)
	}
	for _, rule := range forbidden {
		matches := imported == rule.path || strings.HasSuffix(rule.path, "/") && strings.HasPrefix(imported, rule.path)
		if matches && rule.except[pkg] == "" {
			return fmt.Sprintf("package %q may not import %q: %s; an exception is a line with its reason in forbidden in architecture_test.go", pkg, imported, rule.why)
		}
	}
	return ""
}

// Each row breaks one rule, or is a near miss that breaks none.
func TestBrokenArchitectureIsNoticed(t *testing.T) {
	tests := []struct {
		pkg      string
		test     bool
		imported string
		want     string // a part of what is said; empty if allowed
	}{
		{".", false, modulePath + "/internal/algorithm", ""},
		{".", false, modulePath + "/simulate", `may not import "simulate"`},
		{".", false, "github.com/spf13/cobra", `may not import "github.com/spf13/cobra"`},
		{".", true, "github.com/spf13/cobra", `may not import "github.com/spf13/cobra"`},
		{".", false, "os", "only cmd/weir reads the environment and files"},
		{".", true, "os", ""},
		{".", false, "net/http", "the core speaks no protocol"},
		{".", false, "net/netip", "the core speaks no protocol"},
		{"internal/algorithm", false, "time", "the four functions are pure"},
		{"internal/algorithm", false, "sync", "the four functions are pure"},
		{"internal/algorithm", false, "math/bits", ""},
		{"internal/algorithm", false, modulePath, `may not import "."`},
		{"internal/memory", false, modulePath, `may not import "."`},
		{"simulate", false, modulePath + "/limittest", `may not import "limittest"`},
		{"simulate", false, "flag", "only cmd/weir reads flags"},
		{"cmd/weir/internal/api", false, modulePath + "/simulate", `may not import "simulate"`},
		{"cmd/weir/internal/api", false, "os", "only cmd/weir reads the environment and files"},
		{"cmd/weir", false, "os/signal", ""},
		{"util", false, "strings", `package "util" is unknown`},
	}
	for _, tt := range tests {
		got := violation(tt.pkg, tt.test, tt.imported)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("violation(%q, test %v, %q) = %q, want %q", tt.pkg, tt.test, tt.imported, got, tt.want)
		}
	}
}

// goFile is the part of a source file that the rules need.
type goFile struct {
	path    string
	pkg     string // folder relative to the root, "." for the root
	test    bool
	imports []string
}

// goFiles reads the imports of every Go file of the project, whatever system it is built for.
func goFiles(t *testing.T) (files []goFile) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (name == "testdata" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		f := goFile{path: path, pkg: filepath.ToSlash(filepath.Dir(path)), test: strings.HasSuffix(name, "_test.go")}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatalf("reading the imports: %v", err)
	}
	return files
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// relative returns an import path of ours as seen from the root, and any other path unchanged.
func relative(path string) string {
	if path == modulePath {
		return "."
	}
	return strings.TrimPrefix(path, modulePath+"/")
}
