package conventions

// layer is a group of packages that may import the same. A package belongs to the first layer that lists it.
type layer struct {
	name     string
	packages []string // folders below the root, which is "."; a star stands for any number of characters but a slash
	mayUse   []string // layers; its own name lets its packages import one another
	standard []string // packages of guarded that it may import; one that ends in a slash covers everything below
}

// layers go from the inside out. Tests may import any package of ours and of the standard library.
var layers = []layer{
	{name: "calendar", packages: []string{"internal/calendar"}},
	{name: "functions", packages: []string{"internal/algorithm"}, mayUse: []string{"calendar"}}, // and of the standard library only what pure lists
	{
		name:     "proofs",
		packages: []string{"limittest", "httplimit/httplimittest", "deploy/deploytest", "internal/*test", "internal/testprocess", "internal/vectors", "cmd/weir/internal/page/browsertest", "cmd/weir/internal/sqlengine/drivertest", "cmd/weir/internal/xdstest"},
		mayUse:   []string{"proofs", "kit", "engine kit", "root"},
		standard: []string{"math/rand/v2", "net", "net/", "os", "os/", "testing"},
	},
	{name: "workshop", packages: []string{"internal/conventions", "internal/release"}, standard: []string{"flag", "os", "os/"}},
	{name: "logs", packages: []string{"internal/accesslog", "internal/phrase", "internal/replay", "internal/tape"}, mayUse: []string{"logs", "kit", "root"}},
	{name: "core", packages: []string{"internal/*"}, mayUse: []string{"core", "functions"}, standard: []string{"log/slog"}},
	{name: "root", packages: []string{"."}, mayUse: []string{"core", "functions", "calendar"}, standard: []string{"log/slog", "math/rand/v2"}},
	{name: "engine kit", packages: []string{"enginekit"}, mayUse: []string{"root", "core", "functions"}, standard: []string{"math/rand/v2"}},
	{
		name:     "kit",
		packages: []string{"pace", "layer", "front"},
		mayUse:   []string{"kit", "engine kit", "root", "core"},
		standard: []string{"log/slog", "math/rand/v2"},
	},
	{
		name:     "rooms of adapters",
		packages: []string{"redislimit/internal/*", "httplimit/internal/*"},
		mayUse:   []string{"rooms of adapters", "engine kit", "root"},
		standard: []string{"log/slog", "net", "net/"},
	},
	{
		name:     "engines",
		packages: []string{"redislimit", "sqllimit"},
		mayUse:   []string{"rooms of adapters", "engine kit", "root"},
		standard: []string{"log/slog", "math/rand/v2", "net", "net/"},
	},
	{
		name:     "adapters",
		packages: []string{"httplimit", "grpclimit", "promlimit", "otellimit", "fetch", "simulate"},
		mayUse:   []string{"logs", "rooms of adapters", "kit", "engine kit", "root"},
		standard: []string{"log/slog", "math/rand/v2", "net", "net/"},
	},
	{
		name:     "program",
		packages: []string{"cmd/weir", "cmd/weir/playground", "cmd/weir/internal/program", "cmd/weir/internal/packaging"},
		mayUse:   []string{"program", "commands", "rooms of the program", "rules", "engines", "kit", "root"},
		standard: []string{"net/", "os", "os/"},
	},
	{
		name:     "commands",
		packages: []string{"cmd/weir/internal/serve", "cmd/weir/internal/pace", "cmd/weir/internal/fetch", "cmd/weir/internal/replay", "cmd/weir/internal/simulate", "cmd/weir/internal/check", "cmd/weir/internal/inspect", "cmd/weir/internal/ctl", "cmd/weir/internal/tryout"},
		mayUse:   []string{"logs", "fronts", "rooms of the program", "rules", "adapters", "engines", "kit", "engine kit", "root"},
		standard: []string{"log/slog", "net", "net/", "os", "os/"},
	},
	{
		name:     "fronts",
		packages: []string{"cmd/weir/internal/api", "cmd/weir/internal/rls", "cmd/weir/internal/resp", "cmd/weir/internal/admin", "cmd/weir/internal/kuadrant"},
		mayUse:   []string{"rooms of the program", "rules", "adapters", "kit", "engine kit", "root"},
		standard: []string{"log/slog", "net", "net/"},
	},
	{
		name:     "rules",
		packages: []string{"cmd/weir/internal/plain", "cmd/weir/internal/screen", "cmd/weir/internal/rules", "cmd/weir/internal/lint"},
		mayUse:   []string{"rules", "logs", "kit", "engine kit", "root"},
		standard: []string{"math/rand/v2", "net", "net/"},
	},
	{
		name:     "rooms of the program",
		packages: []string{"cmd/weir/internal/*"},
		mayUse:   []string{"logs", "rooms of the program", "rules", "adapters", "engines", "kit", "engine kit", "root"},
		standard: []string{"log/slog", "math/rand/v2", "net", "net/", "os"},
	},
	{
		name:     "examples",
		packages: []string{"examples/*", "examples/*/*"},
		mayUse:   []string{"examples", "adapters", "engines", "kit", "root"},
		standard: []string{"net", "net/", "os", "os/"},
	},
	{
		name:     "bench",
		packages: []string{"bench/*", "bench/*/*"},
		mayUse:   []string{"bench", "proofs", "adapters", "engines", "kit", "engine kit", "root"},
		standard: []string{"flag", "log/slog", "math/rand/v2", "net", "net/", "os", "os/", "testing"},
	},
}

// exceptions are imports that the layers forbid. One that nobody needs any more fails the test.
var exceptions = []struct{ pkg, imported, why string }{
	{"grpclimit", "httplimit", "it finds clients behind trusted proxies"},
	{"fetch", "httplimit", "its transport learns what servers announce"},
	{"httplimit", "internal/duration", "errors of its Transport name durations"},
	{"cmd/weir/internal/ctl", "cmd/weir/internal/serve", "where the admin socket is"},
	{"cmd/weir/internal/inspect", "cmd/weir/internal/ctl", "a running daemon explains, too"},
	{"front", "net/netip", "addresses are keys"},
	{"internal/accesslog", "net/netip", "clients are addresses"},
	{"internal/accesslog", "net/url", "parameters of a query are decoded"},
	{"redislimit", "os", "a URL names where a password or certificate is"},
	{"sqllimit", "reflect", "drivers keep the SQLSTATE in a field of their own types"},
	{"internal/memory", "unsafe", "the address of a stack, as a number, distinguishes the goroutines that count"},
	{"internal/compiled", "unsafe", "the address of a value in an interface, as a number, is where to look for it first"},
	{"cmd/weir/internal/kuadrant", "cmd/weir/internal/rls", "it finds the rules of descriptors, on whose port it answers"},
	{"cmd/weir/internal/kuadrantpb", "reflect", "generated code"},
	{"cmd/weir/internal/kuadrantpb", "unsafe", "generated code"},
	{"cmd/weir/internal/cli", "os/signal", "a signal ends a command"},
}

// guarded lists packages of the standard library that only the layers that name them may import.
var guarded = map[string]string{
	"flag":         "only programs read flags",
	"os":           "only cmd/weir reads the environment and files",
	"os/":          "only cmd/weir starts and signals processes",
	"log":          "a library does not log; the program uses log/slog",
	"log/slog":     "a library logs where no call can return an error, and otherwise not at all",
	"math/rand":    "math/rand/v2 replaces it",
	"math/rand/v2": "a decision is a function of its inputs",
	"net":          "the core speaks no protocol",
	"net/":         "the core speaks no protocol",
	"plugin":       "nothing is loaded at run time",
	"reflect":      "limits and requests are plain values",
	"testing":      "production code does not link the test framework",
	"unsafe":       "a package that needs it says why",
}

// bytesAlone are the packages that read rules from bytes, wherever a program runs, in a browser, too. Nothing that they import may
// read files, watch them or know a terminal.
var bytesAlone = []string{"cmd/weir/internal/rules", "cmd/weir/internal/lint"}

// byBytes are the packages of others that they may import.
var byBytes = []string{"github.com/goccy/go-yaml/ast", "github.com/goccy/go-yaml/parser", "github.com/goccy/go-yaml/scanner", "github.com/goccy/go-yaml/token"}

// pure is what the functions may import, so that no clock, lock, context, logger or I/O comes in.
// An atomic pointer remembers the window that a quota computed last.
var pure = []string{"cmp", "math", "math/bits", "slices", "sort", "sync/atomic"}
