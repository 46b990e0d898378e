package rules

import (
	"fmt"
	"strings"
)

// forbidden lists packages of the standard library that only some packages may import. Tests may import all of them.
// A pattern that ends in a slash covers everything below.
var forbidden = []struct {
	path   string
	why    string
	except reasons // packages that may, and why
}{
	{"flag", "only cmd/weir reads flags", reasons{"bench/campaign": "it is a program, too", "bench/cliffs": "it is a program, too", "bench/cmd/compare": "it is a program, too", "bench/hostile": "it is a program, too", "bench/internal/measure": "it runs the measuring programs", "bench/internal/trial": "it runs programs, too", "bench/large": "it is a program, too", "bench/replay": "it is a program, too", "bench/soak": "it is a program, too"}},
	{"os", "only cmd/weir reads the environment and files", reasons{
		"examples/obedient/client":   "it is a program",
		"examples/obedient/server":   "it is a program",
		"examples/crawler":           "it is a program",
		"examples/worker":            "it is a program",
		"bench/campaign":             "it is a program",
		"bench/cliffs":               "it is a program",
		"bench/cmd/compare":          "it is a program",
		"bench/hostile":              "it is a program",
		"bench/redis":                "it is a program",
		"bench/replay":               "it is a program",
		"bench/resp":                 "it is a program",
		"bench/soak":                 "it is a program",
		"bench/waiting":              "it is a program",
		"internal/layertest":         "tests ask for layers by an environment variable",
		"bench/internal/localredis":  "a server has a folder",
		"bench/internal/measure":     "it runs the measuring programs",
		"bench/internal/picture":     "it writes the pictures of the benchmarks",
		"cmd/weir":                   "it is the program",
		"cmd/weir/internal/cli":      "it reads the environment and files for the commands",
		"cmd/weir/internal/collect":  "it writes pages and their journal",
		"cmd/weir/internal/ctl":      "it reads tokens",
		"cmd/weir/internal/override": "it keeps them in a file",
		"cmd/weir/internal/fetch":    "it is a command",
		"cmd/weir/internal/filelock": "it locks files",
		"cmd/weir/internal/inspect":  "it has commands",
		"cmd/weir/internal/pace":     "it is a command",
		"cmd/weir/internal/rules":    "it reads rules files",
		"cmd/weir/internal/serve":    "it is a command",
		"internal/vectors":           "WEIR_VECTORS names another folder of vectors",
		"internal/redistest":         "servers of tests have a configuration file each",
		"internal/sqltest":           "servers of tests have a folder each",
		"internal/gatewaytest":       "gateways of tests have a configuration file each",
		"internal/testprocess":       "CI says whether a missing program fails a test",
		"redislimit":                 "a URL names where a password or certificate is",
	}},
	{"os/", "only cmd/weir starts and signals processes", reasons{"examples/obedient/client": "it ends when it is interrupted",
		"bench/campaign":            "it starts the processes that ask",
		"bench/internal/measure":    "it makes and starts two builds of a bench, and asks git for the commit",
		"bench/hostile":             "it starts and signals daemons",
		"bench/internal/localredis": "it starts the servers",
		"bench/replay":              "it runs weir replay",
		"bench/resp":                "it starts the servers",
		"cmd/weir/internal/cli":     "a signal ends a command",
		"cmd/weir/internal/pace":    "it runs a command for each line",
		"cmd/weir/internal/serve":   "a signal ends the daemon",
		"internal/redistest":        "it starts the servers of tests",
		"internal/sqltest":          "it starts the servers of tests",
		"internal/gatewaytest":      "it starts the gateways of tests",
		"internal/testprocess":      "it starts the programs of tests",
	}},
	{"log", "a library does not log; the program uses log/slog", reasons{}},
	{"log/slog", "a library does not log", reasons{
		"front":                      "a failing engine is logged, where no call can return an error",
		"bench/middleware":           "an option of what it compares is a logger",
		"httplimit":                  "likely mistakes in the configuration are logged once, where no call can return an error",
		"grpclimit":                  "an option is a logger",
		".":                          "an option of the memory engine is a logger",
		"layer":                      "the change of an engine is logged, where no call can return an error",
		"internal/memory":            "it warns a given logger when keys find no room",
		"redislimit":                 "an option is a logger",
		"redislimit/internal/calls":  "a server's clock that moves is logged, where no call can return an error",
		"cmd/weir/internal/serve":    "the daemon logs",
		"cmd/weir/internal/api":      "a failing engine is logged where the request is known",
		"cmd/weir/internal/resp":     "a panic is logged where the connection is known",
		"cmd/weir/internal/rls":      "rules that Envoy cannot obey, and panics, are logged",
		"cmd/weir/internal/admin":    "changes are logged",
		"cmd/weir/internal/metrics":  "a sample of the refusals is logged",
		"cmd/weir/internal/override": "a server that cannot be asked is logged, where no call can return an error",
	}},
	{"math/rand", "a decision is a function of its inputs", reasons{}},
	{"math/rand/v2", "a decision is a function of its inputs", reasons{
		"bench/replay":             "clients of a made-up log are drawn",
		"layer":                    "which calls are measured",
		"enginekit":                "processes whose swaps conflict pause for different times",
		"pace":                     "callers of several processes spread their questions",
		"httplimit":                "the identity that slots are held by, and the spread of requests after a pause",
		"grpclimit":                "the spread of calls after a pause",
		"bench/internal/workload":  "keys are drawn",
		"bench/cliffs":             "rates are drawn",
		"bench/campaign":           "faults and calls are drawn",
		"bench/hostile":            "attacks and honest requests are drawn",
		"bench/internal/trial":     "seeds are drawn",
		"bench/redis":              "callers ask at random times",
		"bench/waiting":            "callers stay for random times",
		"bench/soak":               "rules, keys, verbs and steps are drawn",
		"redislimit":               "the identities of takes across lanes",
		".":                        "jitter of waiting callers, and the identity of a lease",
		"internal/memory":          "which decisions are samples",
		"cmd/weir/internal/top":    "which decisions are samples",
		"cmd/weir/internal/traces": "identities of spans are drawn",
		"internal/testprocess":     "where to look for a free port",
		"simulate":                 "arrivals of made-up traffic are drawn, from a given seed",
	}},
	{"net/", "the core speaks no protocol", reasons{
		"examples/obedient":           "it shows a client and a server",
		"examples/obedient/client":    "it is a program",
		"examples/obedient/server":    "it is a program",
		"front":                       "addresses are keys",
		"httplimit":                   "it is the HTTP middleware",
		"grpclimit":                   "addresses of clients",
		"examples/fallback":           "it shows the HTTP middleware",
		"examples/routers":            "it shows the HTTP middleware",
		"examples/crawler":            "its transport can be replaced",
		"examples/worker":             "it asks a vendor",
		"fetch":                       "it sends requests over HTTP",
		"httplimit/internal/announce": "it reads header fields",
		"httplimit/httplimittest":     "it sends requests to handlers under test",
		"bench/hostile":               "it asks daemons over HTTP",
		"bench/middleware":            "it compares HTTP middlewares",
		"cmd/weir/internal/rules":     "rules match addresses and networks",
		"cmd/weir/internal/door":      "it looks at requests",
		"cmd/weir/internal/resp":      "it serves connections",
		"cmd/weir/internal/serve":     "it listens",
		"cmd/weir/internal/api":       "it is the HTTP front",
		"cmd/weir/internal/metrics":   "it serves /metrics, and counts requests",
		"cmd/weir/internal/top":       "it serves /v1/top",
		"cmd/weir/internal/traces":    "it sends spans over HTTP",
		"cmd/weir/internal/rls":       "it is the front of Envoy, also in JSON",
		"cmd/weir/internal/admin":     "it is the HTTP front of weir ctl",
		"cmd/weir/internal/ctl":       "it asks over HTTP",
		"cmd/weir/internal/inspect":   "it names the method of a request",
		"redislimit":                  "an engine can be named by a URL",
		"redislimit/internal/wire":    "keys of earlier versions are not escaped",
	}},
	{"net", "the core speaks no protocol", reasons{
		"examples/obedient/server":    "it listens",
		"fetch":                       "it looks at the addresses that are dialed",
		"internal/sqltest":            "it waits for the sockets of servers",
		"grpclimit":                   "addresses of clients",
		"httplimit":                   "a hijacked connection holds its slots",
		"bench/campaign":              "it damages connections",
		"bench/hostile":               "it asks daemons over connections of its own making",
		"bench/internal/localredis":   "it looks for a free port, and links connections",
		"bench/middleware":            "requests come from addresses",
		"bench/resp":                  "it asks the servers",
		"cmd/weir/internal/rules":     "rules match addresses and networks",
		"cmd/weir/internal/resp":      "it serves connections",
		"cmd/weir/internal/ctl":       "it dials a socket",
		"cmd/weir/internal/serve":     "it listens",
		"cmd/weir/internal/rls":       "it listens for gRPC",
		"redislimit":                  "an engine can be named by a URL",
		"redislimit/internal/fault":   "a dial that failed has sent nothing",
		"redislimit/internal/servers": "it dials",
		"internal/redistest":          "it asks the servers of tests",
		"internal/gatewaytest":        "it waits until a gateway listens",
		"internal/testprocess":        "it looks for a free port",
	}},
	{"plugin", "nothing is loaded at run time", reasons{}},
	{"reflect", "limits and requests are plain values", reasons{"sqllimit": "drivers keep the SQLSTATE in a field of their own types"}},
	{"testing", "production code does not link the test framework", reasons{
		"bench/internal/localredis": "the servers of internal/redistest belong to a test, or to what stands in for one",
		"httplimit/httplimittest":   "it is for tests only",
		"limittest":                 "it is a test suite",
		"internal/vectors":          "it is for tests only",
		"internal/redistest":        "it is for tests only",
		"internal/gatewaytest":      "it is for tests only",
		"internal/sqltest":          "it is for tests only",
		"internal/testprocess":      "it is for tests only",
	}},
	{"unsafe", "a package that needs it says why", reasons{
		"internal/memory": "the address of a stack, as a number, distinguishes the goroutines that count",
		"internal/rule":   "the address of a value in an interface, as a number, is where to look for it first",
	}},
}

// pure lists the only standard packages that internal/algorithm may import, so that no clock, lock, context, logger
// or I/O comes in.
var pure = reasons{
	"cmp":       "the order of leases",
	"math":      "constants of the integer types",
	"math/bits": "products and quotients of 128 bits",
	"slices":    "the leases of a concurrency limit",
	"sort":      "searches in logs and leases",
}

func standardViolation(pkg, imported string) string {
	if pkg == "internal/algorithm" && pure[imported] == "" {
		return fmt.Sprintf("internal/algorithm may not import %q: the four functions are pure; if it brings no clock, lock or I/O, add it to pure in architecture_standard_test.go", imported)
	}
	for _, rule := range forbidden {
		matches := imported == rule.path || strings.HasSuffix(rule.path, "/") && strings.HasPrefix(imported, rule.path)
		if matches && rule.except[pkg] == "" {
			return fmt.Sprintf("package %q may not import %q: %s; an exception is a line with its reason in forbidden in architecture_standard_test.go", pkg, imported, rule.why)
		}
	}
	return ""
}
