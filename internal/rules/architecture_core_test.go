package rules

// coreRules lists the library without its adapters, and what its tests share.
var coreRules = map[string]packageRule{
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
			"enginekit":          "a memory engine is no keeper of lines",
			"internal/layertest": "engines of tests have empty functions around them",
			"internal/vectors":   "Limiter and Keyed pass them",
			"limittest":          "the suite tests the memory engine, like every engine",
			"simulate":           "a limit that is registered can be replayed",
		},
	},
	"internal/algorithm": {},
	"internal/clock":     {},
	"internal/duration":  {},
	"internal/fair":      {},
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
			"internal/fair":      "waiting callers queue in flows",
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
		imports: reasons{
			".":             "calls and streams wait for turns of its limiters",
			"enginekit":     "an engine keeps lines for the callers of its queues",
			"internal/fair": "callers queue in flows, and lines are in heaps",
			"internal/line": "a delayed caller is held back by it",
		},
		testImports: reasons{
			"internal/waittest":  "the promises of waiting are one suite for every engine",
			"internal/layertest": "engines of tests have empty functions around them",
			"layer":              "queues ask through a Guard",
		},
	},
	"fetch": {
		imports: reasons{
			".":                             "rates, and the limiter of the total",
			"pace":                          "domains are flows that share the bandwidth, and crawlers queue for turns",
			"httplimit":                     "its transport learns what servers announce",
			"golang.org/x/net/html":         "links of pages",
			"golang.org/x/net/html/atom":    "links of pages",
			"golang.org/x/net/idna":         "the ASCII form of a host",
			"golang.org/x/net/publicsuffix": "a pace is for a registrable domain",
		},
	},
	"layer": {
		imports: reasons{
			".":         "a layer is an engine around an engine",
			"enginekit": "it keeps what it knows of a rule with the rule, and checks requests as engines do",
		},
		testImports: reasons{
			"internal/layertest": "engines of tests have empty functions around them",
			"limittest":          "an engine below a layer passes the suite",
			"pace":               "callers wait for an engine below a layer",
		},
	},
	"limittest": {
		imports: reasons{".": "the suite asks an engine", "internal/vectors": "it plays them on engines"},
	},
	"internal/vectors": {
		imports:     reasons{".": "scenarios have limits"},
		testImports: reasons{"internal/algorithm": "the vectors bind the pure functions too"},
	},
	"enginekit": {
		imports: reasons{
			".":                  "what it makes are engines",
			"internal/algorithm": "the verbs that decide calls",
			"internal/rule":      "requests are checked, merged and named in one place",
		},
		testImports: reasons{"limittest": "the engine of the example passes the suite", "internal/waittest": "the promises of waiting are one suite for every engine", "pace": "queues wait for a store"},
	},
	"simulate": {
		imports: reasons{
			".":     "replay and driver ask the same engine and limits as production does",
			"front": "a client of a log has the key that it has for every front",
		},
	},
	"internal/rules": {
		testImports: reasons{".": "limits in documents are parsed, and codes have names"},
	},
	"internal/release": {},
	"internal/house":   {},
	"internal/layertest": {
		imports: reasons{".": "its functions stand around engines"},
	},
	"internal/waittest": {
		imports: reasons{".": "what it connects are engines", "pace": "its callers wait in queues"},
	},
	"internal/testprocess": {},
	"internal/sqltest":     {imports: reasons{"internal/testprocess": "a server ends with its test"}},
	"internal/redistest": {
		imports: reasons{"internal/testprocess": "its servers end with the test"},
	},
	"internal/gatewaytest": {
		imports: reasons{"internal/testprocess": "its gateways end with the test"},
	},
}
