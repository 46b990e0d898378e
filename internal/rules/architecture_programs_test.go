package rules

// programRules lists the program weir and the examples.
var programRules = map[string]packageRule{
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
	"examples/fallback": {
		imports: reasons{
			"httplimit":                "its middlewares limit the API",
			"layer":                    "it shows an outage",
			"redislimit":               "replicas share it",
			"github.com/go-chi/chi/v5": "with this router",
		},
		testImports: reasons{"internal/redistest": "a real server hangs"},
	},
	"examples/routers": {
		imports: reasons{
			"httplimit":                "it shows its middlewares",
			"github.com/go-chi/chi/v5": "with this router",
		},
		testImports: reasons{"httplimit/httplimittest": "it tests limited handlers"},
	},
	"cmd/weir/internal/screen": {},
	"cmd/weir/internal/picture": {
		imports: reasons{
			"gonum.org/v1/plot":          "axes, legends and alignment",
			"gonum.org/v1/plot/font":     "the font of texts",
			"gonum.org/v1/plot/plotter":  "lines, areas, points",
			"gonum.org/v1/plot/vg":       "lengths",
			"gonum.org/v1/plot/vg/draw":  "the canvas",
			"gonum.org/v1/plot/vg/vgimg": "PNG files",
			"gonum.org/v1/plot/vg/vgsvg": "SVG files",
			"cmd/weir/internal/screen":   "drawings with characters fit a terminal",
		},
	},
	"cmd/weir": {
		imports: reasons{"cmd/weir/internal/program": "it is the program"},
		testImports: reasons{
			"simulate":                "tests compute the numbers of docs/choosing.md",
			".":                       "tests compute the numbers of docs/choosing.md",
			"cmd/weir/internal/cli":   "tests compute the numbers of docs/choosing.md",
			"cmd/weir/internal/serve": "its examples are tried",
			"cmd/weir/internal/pace":  "its examples are tried",
			"github.com/rogpeppe/go-internal/testscript": "script tests run the real main",
			"internal/redistest":                         "examples name a real server",
		},
	},
	"cmd/weir/internal/program": {
		imports: reasons{
			"cmd/weir/internal/cli":      "errors with hints",
			"cmd/weir/internal/serve":    "it is a command",
			"cmd/weir/internal/pace":     "it is a command",
			"cmd/weir/internal/fetch":    "it is a command",
			"cmd/weir/internal/replay":   "it is a command",
			"cmd/weir/internal/simulate": "it is a command",
			"cmd/weir/internal/check":    "it is a command",
			"cmd/weir/internal/inspect":  "it has commands",
			"github.com/spf13/cobra":     "commands, help and completion",
		},
	},
	"cmd/weir/internal/cli": {
		imports: reasons{
			".":                                    "texts of limits in flags",
			"simulate":                             "logs are read into its traffic",
			"redislimit":                           "failures of Redis have hints",
			"cmd/weir/internal/picture":            "--plot",
			"cmd/weir/internal/screen":             "tables fit a terminal",
			"github.com/spf13/cobra":               "flags and their completion",
			"github.com/vbauerster/mpb/v8":         "progress on a terminal",
			"github.com/vbauerster/mpb/v8/decor":   "progress on a terminal",
			"github.com/vbauerster/mpb/v8/cwriter": "the width of a terminal",
		},
	},
	"cmd/weir/internal/filelock": {},
	"cmd/weir/internal/door":     {},
	"cmd/weir/internal/resp": {
		imports: reasons{
			".":                      "limits in calls are its rules",
			"cmd/weir/internal/api":  "waits are those of the API",
			"cmd/weir/internal/door": "clients have scopes",
		},
		testImports: reasons{
			"pace":                         "its queue waits in tests",
			"github.com/redis/go-redis/v9": "real clients ask",
			"github.com/redis/rueidis":     "real clients ask",
		},
	},
	"cmd/weir/internal/serve": {
		imports: reasons{
			".":                          "it chooses the engine and makes the rules",
			"redislimit":                 "--engine",
			"layer":                      "Redis may be away",
			"httplimit":                  "it finds the addresses of clients behind gateways",
			"cmd/weir/internal/api":      "the handler that it serves",
			"cmd/weir/internal/cli":      "errors with hints, flags",
			"cmd/weir/internal/door":     "each port has one",
			"cmd/weir/internal/resp":     "--resp",
			"cmd/weir/internal/filelock": "two daemons never share a state file",
			"cmd/weir/internal/rules":    "--config",
			"github.com/spf13/cobra":     "it is a command",
			"github.com/spf13/pflag":     "cobra's flags, which variables stand for",
		},
		testImports: reasons{
			"internal/layertest":                         "engines of tests have empty functions around them",
			"internal/redistest":                         "tests of --engine ask real servers",
			"internal/gatewaytest":                       "real gateways ask the daemon",
			"internal/testprocess":                       "ports for the gateways",
			"cmd/weir/internal/program":                  "tests start the real program",
			"github.com/rogpeppe/go-internal/testscript": "tests start the real program",
		},
	},
	"cmd/weir/internal/pace": {
		imports: reasons{
			".":                                  "limits",
			"redislimit":                         "--engine",
			"cmd/weir/internal/cli":              "errors with hints, flags, progress",
			"cmd/weir/internal/filter":           "it copies the lines",
			"github.com/spf13/cobra":             "it is a command",
			"github.com/vbauerster/mpb/v8/decor": "progress on a terminal",
		},
		testImports: reasons{
			"internal/redistest":                         "pipes share a real server",
			"cmd/weir/internal/program":                  "tests start the real program",
			"github.com/rogpeppe/go-internal/testscript": "tests start the real program",
		},
	},
	"cmd/weir/internal/fetch": {
		imports: reasons{
			".":                                  "rates",
			"fetch":                              "it fetches",
			"cmd/weir/internal/cli":              "errors with hints, flags, progress",
			"cmd/weir/internal/collect":          "the folder of pages",
			"cmd/weir/internal/filelock":         "two processes never share a journal",
			"github.com/spf13/cobra":             "it is a command",
			"github.com/vbauerster/mpb/v8/decor": "progress on a terminal",
		},
		testImports: reasons{
			"cmd/weir/internal/program":                  "tests start the real program",
			"github.com/rogpeppe/go-internal/testscript": "tests start the real program",
		},
	},
	"cmd/weir/internal/rules": {
		imports: reasons{
			".":                               "limits, requests, and the engine of tests of rules",
			"layer":                           "rules name the answer while the engine fails",
			"cmd/weir/internal/cli":           "problems are printed in the words of other errors",
			"github.com/goccy/go-yaml":        "files are YAML",
			"github.com/goccy/go-yaml/ast":    "each value has its place in the file",
			"github.com/goccy/go-yaml/lexer":  "structures that are too deep are refused before they are parsed",
			"github.com/goccy/go-yaml/parser": "files are YAML",
			"github.com/goccy/go-yaml/token":  "each value has its place in the file",
			"github.com/fsnotify/fsnotify":    "files are read again when they change",
		},
		testImports: reasons{"github.com/santhosh-tekuri/jsonschema/v6": "the schema says what the parser reads"},
	},
	"cmd/weir/internal/inspect": {imports: reasons{
		".":                       "states of a daemon are peeked at",
		"cmd/weir/internal/cli":   "errors with hints, flags",
		"cmd/weir/internal/rules": "it shows them",
		"github.com/spf13/cobra":  "it has commands",
	}},
	"cmd/weir/internal/replay": {imports: reasons{
		"simulate":                  "it replays",
		"cmd/weir/internal/cli":     "errors with hints, flags, logs, plots",
		"cmd/weir/internal/picture": "plots of replays",
		"cmd/weir/internal/screen":  "tables fit a terminal",
		"github.com/spf13/cobra":    "it is a command",
	}},
	"cmd/weir/internal/simulate": {imports: reasons{
		".":                         "bounds of rates and times",
		"simulate":                  "it compares limits",
		"cmd/weir/internal/cli":     "errors with hints, flags, logs, plots",
		"cmd/weir/internal/picture": "plots of simulations",
		"cmd/weir/internal/screen":  "tables fit a terminal",
		"github.com/spf13/cobra":    "it is a command",
	}},
	"cmd/weir/internal/check": {imports: reasons{
		".":                         "the limits that it explains",
		"simulate":                  "what a limit gives out over time",
		"cmd/weir/internal/cli":     "errors with hints, flags, plots",
		"cmd/weir/internal/picture": "plots of limits",
		"cmd/weir/internal/screen":  "texts fit a terminal",
		"github.com/spf13/cobra":    "it is a command",
	}},
	"cmd/weir/internal/collect": {
		imports:     reasons{"fetch": "it saves pages, and says which URLs are done"},
		testImports: reasons{".": "tests crawl at a pace of their own"},
	},
	"cmd/weir/internal/filter": {
		imports: reasons{
			".":    "a filter writes the lines that the library admits",
			"pace": "lines wait in its queue for several limits, and for limits that pipes share",
		},
	},
	"cmd/weir/internal/api": {
		imports: reasons{
			".":                       "it decodes a request, asks the engine, encodes the answer",
			"cmd/weir/internal/rules": "attributes of requests find rules in files",
			"httplimit":               "gateways get the status and the header fields that its middleware gives",
			"pace":                    "callers wait in its queue",
			"github.com/go-json-experiment/json/jsontext": "requests are read token by token, and refused at the first wrong one",
		},
		testImports: reasons{
			"internal/layertest": "engines of tests have empty functions around them",
			"redislimit":         "what wraps its engine has each of its methods",
		},
	},
}
