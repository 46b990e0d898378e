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
			"cmd/weir/internal/screen":             "tables fit a terminal",
		},
		testImports: reasons{
			"github.com/rogpeppe/go-internal/testscript": "script tests run the real main",
			"internal/redistest":                         "tests of weir serve --engine ask real servers",
			"internal/gatewaytest":                       "real gateways ask weir serve",
			"internal/testprocess":                       "ports for the gateways",
		},
	},
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
			".":         "it decodes a request, asks the engine, encodes the answer",
			"httplimit": "gateways get the status and the header fields that its middleware gives",
			"pace":      "callers wait in its queue",
			"github.com/go-json-experiment/json/jsontext": "requests are read token by token, and refused at the first wrong one",
		},
		testImports: reasons{"redislimit": "what wraps its engine has each of its methods"},
	},
}
