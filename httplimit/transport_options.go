package httplimit

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/httplimit/internal/obey"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/pace"
)

// TransportOptions configure a Transport. The zero value obeys servers and has no limits of its own.
type TransportOptions struct {
	// Base sends the requests. Default: http.DefaultTransport.
	Base http.RoundTripper
	// Key names the requests that a server limits together. A server's answer to one of them holds for all of
	// them. A request with an empty key is sent without any limit. Default: Host. If the server limits each credential
	// or each resource apart, use for example Combine(Host, Credential).
	Key Key

	// Rules are limits of the program's own: rates, quotas, slots. A request waits until all of them, and the server,
	// admit it at one instant. There are up to 16, without After and Settled. Their default Key is the Key of the options.
	Rules []Rule
	// Engine remembers the Rules and decides. With an engine in Redis many machines share them. An engine on a network gets a
	// layer.Guard and a layer.DenyUntil, unless it has a Guard. Default: a weir.Memory of its own.
	Engine weir.Engine
	// Guard says what answers while an engine on a network is away. Default: nothing, so that requests wait until it is back
	// or their contexts end.
	Guard layer.GuardOptions
	// Delay returns the least time between the starts of two requests of one key, such as the crawl delay of a host.
	// It must be fast, and safe for concurrent use. Default: none.
	Delay func(*http.Request) time.Duration
	// Tokens estimates the tokens that a request to a language model will use. A request waits until the tokens that the
	// server has announced as remaining cover the estimates of this request and of those sent before it. When the answer
	// has been read to its end, its usage replaces the estimate. Tokens must leave the body of the request alone, and be
	// fast and safe for concurrent use. Default: tokens are not counted, and requests wait only when none remain.
	Tokens func(*http.Request) Tokens
	// Bandwidth returns what paces the body of an answer, in bytes, such as a *weir.Limiter; nil is no limit. Each key
	// is a flow: keys share a limiter fairly, and leave each other what they do not use (pace.InFlow). The bytes are
	// those that the caller reads, after decompression. Default: none.
	Bandwidth func(*http.Request) pace.Pacer

	// Refused reports that an answer is a refusal, for servers that refuse in another way than with 429, 503 or 529, such as in
	// the body of a 200. It returns the pause that the server asks for; the header fields decide if it is 0 or shorter than
	// theirs. The request is sent again like one that was refused with 429. If ok is false, the answer is read as without
	// the function. The function must be fast and safe for concurrent use. If it reads the body, it puts an unread one in
	// its place. Default: none.
	Refused func(answer *http.Response) (wait time.Duration, ok bool)

	// MaxPause bounds the pause that a server can ask for. A request that would have to wait longer for the server
	// fails at once with a *weir.WaitError; if it was just refused, the refusal is returned. Default: 10 minutes.
	MaxPause time.Duration
	// CapPauses cuts longer pauses to MaxPause, and tries again then, instead of failing.
	CapPauses bool
	// Retries bounds the retries of one request. A negative number is none. Default: 4. There is also a budget for
	// each key: 100 retries, and one more for each 5 answers that are not refusals.
	Retries int

	// MaxKeys bounds the keys that the Transport remembers. It forgets keys about which there is nothing to know. More
	// keys than that fail with weir.ErrNoRoom. Default: 100,000.
	MaxKeys int
	// MaxWaiting bounds the requests that wait. Further ones fail with weir.ErrQueueFull. Default: 65,536.
	MaxWaiting int
	// Observe is called when a request is held back, when it is refused by the server, and when it is sent again. It
	// must be fast, because later requests of the key may wait for it, and safe for concurrent use.
	Observe func(*http.Request, TransportEvent)
}

const (
	defaultMaxPause   = 10 * time.Minute
	defaultRetries    = 4
	defaultMaxGates   = 100_000
	defaultMaxWaiting = 1 << 16
)

// keeper is what the Transports over several bases share.
type keeper struct {
	TransportOptions
	rules    *front.Rules[*http.Request, Answer]
	queue    *pace.Queue
	gates    gates
	obeyed   obey.Config
	counters counters
}

func (k *keeper) events() events { return k.Observe }

const transportName = "httplimit: transport" // in errors

func newKeeper(o TransportOptions) (*keeper, error) {
	o.setDefaults()
	k := &keeper{TransportOptions: o, obeyed: obey.Config{Spread: spread}}
	if o.CapPauses {
		k.obeyed.MaxPause = o.MaxPause
	}
	k.gates.init(o.MaxKeys)
	var err error
	k.rules, err = front.NewRules(front.Options[*http.Request, Answer]{
		Name: transportName, Rules: o.Rules, Key: o.Key, Engine: o.Engine, Guard: o.Guard, Check: checkWaits,
	})
	if err := errors.Join(append(o.check(), err)...); err != nil {
		return nil, err
	}
	if k.rules.Settle() {
		return nil, transportError("rules", "have an After or are Settled, which only a middleware does")
	}
	k.Engine = k.rules.Engine
	k.queue, err = pace.NewQueue(k.Engine, pace.QueueOptions{Queue: o.MaxWaiting})
	return k, err
}

func (o *TransportOptions) setDefaults() {
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	if o.Key == nil {
		o.Key = Host
	}
	o.MaxPause = cmp.Or(o.MaxPause, defaultMaxPause)
	o.Retries = cmp.Or(o.Retries, defaultRetries)
	o.MaxKeys = cmp.Or(o.MaxKeys, defaultMaxGates)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, defaultMaxWaiting)
}

func (o *TransportOptions) check() (problems []error) {
	if o.MaxPause < 0 {
		problems = append(problems, transportError("maxPause", "%v is negative", o.MaxPause))
	}
	if o.MaxKeys < 0 {
		problems = append(problems, transportError("maxKeys", "%d is negative", o.MaxKeys))
	}
	if o.MaxWaiting < 0 {
		problems = append(problems, transportError("maxWaiting", "%d is negative", o.MaxWaiting))
	}
	return problems
}

// checkWaits refuses limits that cannot be given back if the server has announced other limits meanwhile.
func checkWaits(rule *weir.Rule) error {
	for _, limit := range rule.Limits() {
		if weir.Describe(limit).Alone {
			return transportError("limit", "%s cannot be combined with limits that servers announce: use a token bucket or a rate gate", limit)
		}
	}
	return nil
}

func transportError(field, format string, values ...any) *weir.OptionError {
	return front.OptionError(transportName, field, format, values...)
}

// spread returns a random time below its argument.
func spread(most time.Duration) time.Duration {
	if most < 1 {
		return 0
	}
	return rand.N(most)
}
