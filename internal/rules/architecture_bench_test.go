package rules

// benchRules lists what measures and torments the library.
var benchRules = map[string]packageRule{
	"bench/cmd/compare": {
		imports: reasons{
			".":                       "how long its callers wait is measured",
			"bench/internal/measure":  "its runner",
			"bench/internal/peers":    "they are measured",
			"bench/internal/workload": "peers are asked for its keys",
		},
	},
	"bench/cliffs": {
		imports: reasons{
			".":                       "whose decisions it measures",
			"bench/internal/measure":  "its runner",
			"bench/internal/workload": "it draws the keys",
		},
	},
	"bench/campaign": {
		imports: reasons{
			"bench/internal/localredis": "its servers",
			"bench/internal/measure":    "it names the machine",
			"bench/internal/trial":      "its ledger, checker and flags",
			".":                         "rules of what it asks",
			"redislimit":                "it checks its promises",
			"enginekit":                 "it notes what callers in lines are told",
			"pace":                      "its callers wait",
			"internal/redistest":        "it breaks real servers",
			"github.com/redis/rueidis":  "it damages the connections of its clients",
		},
		testImports: reasons{"internal/testprocess": "without redis-server a test is skipped"},
	},
	"bench/deadline": {
		imports: reasons{
			".":                         "rules of what is measured",
			"redislimit":                "it is measured",
			"bench/internal/localredis": "it asks a server of its own",
		},
	},
	"bench/layers": {
		imports: reasons{
			".":                                  "rules of what is compared",
			"layer":                              "it is measured",
			"redislimit":                         "the engine below",
			"bench/internal/measure":             "its runner",
			"bench/internal/localredis":          "it asks a server of its own",
			"github.com/go-redis/redis_rate/v10": "rival",
			"github.com/redis/go-redis/v9":       "the client of the rival",
		},
		testImports: reasons{"internal/redistest": "a server"},
	},
	"bench/large": {
		imports: reasons{
			".":                       "whose memory it measures",
			"bench/internal/measure":  "its runner",
			"bench/internal/workload": "it makes the keys",
		},
	},
	"bench/hostile": {
		imports: reasons{
			".":                         "its bounds are those of limits",
			"bench/internal/localredis": "daemons share a server",
			"bench/internal/measure":    "the idle handler is a child",
			"bench/internal/trial":      "its report, ledger and checker",
		},
	},
	"bench/histories": {
		testImports: reasons{
			".":                                 "whose histories are judged",
			"pace":                              "whose queue is judged",
			"github.com/anishathalye/porcupine": "it searches for an order that a model allows",
		},
	},
	"bench/middleware": {
		imports: reasons{
			"bench/internal/measure":                                "its runner",
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
			"bench/internal/measure":             "its runner",
			"bench/internal/localredis":          "it asks servers of its own",
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
	"bench/resp": {
		imports: reasons{
			"bench/internal/measure":    "its runner",
			"bench/internal/localredis": "a real server beside it",
			"bench/internal/workload":   "keys",
			"github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3": "it asks like Envoy",
			"github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3":           "it asks like Envoy",
			"google.golang.org/grpc":                            "it asks like Envoy",
			"google.golang.org/grpc/credentials/insecure":       "connections on the loopback interface",
			"google.golang.org/protobuf/types/known/durationpb": "durations in answers of an echo",
		},
	},
	"bench/scaling": {},
	"bench/waitsim": {},
	"bench/waiting": {
		imports: reasons{
			".":                            "rules of what callers wait for",
			"pace":                         "its queue is measured",
			"redislimit":                   "the queue's engine",
			"bench/internal/localredis":    "its processes share a server",
			"bench/internal/measure":       "it runs two builds",
			"github.com/redis/go-redis/v9": "it asks the server what it has done",
		},
	},
	"bench/internal/trial": {
		imports: reasons{".": "limits have bounds", "bench/internal/measure": "it names the commit"},
	},
	"bench/soak": {
		imports: reasons{
			".":                    "it drives the memory engine and keeps its own accounts",
			"bench/internal/trial": "its report and checker",
		},
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
	"bench/internal/measure": {},
	"bench/internal/localredis": {
		imports: reasons{"internal/redistest": "programs start the servers of tests"},
	},
}
