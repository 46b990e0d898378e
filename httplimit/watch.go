package httplimit

import (
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// mistake is a likely mistake in the configuration. Each is logged once.
type mistake int

const (
	madeInRequest mistake = iota
	countedTwice
	keyWithPort
	noKeys
	unexpectedHeader
	missingHeader
	badHeader
	oneAddress
	mistakes
)

// advice describes each mistake and where to read about it.
var advice = [mistakes]string{
	madeInRequest:    "httplimit: a middleware was made within a request, so its limits begin anew each time: make it once, when the program starts; see docs/reference/http.md#made-within-a-request",
	countedTwice:     "httplimit: two middlewares count a request under the same rule and key on the same engine, so it costs twice: remove one or rename its rule; see docs/reference/http.md#counted-twice",
	keyWithPort:      "httplimit: a key is an address with a port, so that each connection has a budget of its own: use Client.Key; see docs/reference/http.md#a-key-with-a-port",
	noKeys:           "httplimit: no request so far had a key under a rule: a path value is unknown around the mux, and a header may have another name; see docs/reference/http.md#no-keys",
	unexpectedHeader: "httplimit: a request has a header of proxies, and no proxy is trusted: if the request came through a proxy, name it in ClientOptions.Trusted; see docs/howto/http.md#behind-a-proxy",
	missingHeader:    "httplimit: a trusted proxy does not tell the address of its client, so all its clients share one budget: see docs/howto/http.md#behind-a-proxy",
	badHeader:        "httplimit: a trusted proxy passes on a header that is no list of addresses: see docs/howto/http.md#behind-a-proxy",
	oneAddress:       "httplimit: all requests so far came from one address: if it is a proxy, name it in ClientOptions.Trusted; see docs/howto/http.md#behind-a-proxy",
}

// watched is the number of requests that are inspected. Later ones cost nothing.
const watched = 1000

// watch logs likely mistakes.
type watch struct {
	logger *slog.Logger
	left   atomic.Int64
	said   [mistakes]atomic.Bool
	keyed  [16]atomic.Bool // by rule
}

func newWatch(logger *slog.Logger) *watch {
	w := &watch{logger: logger}
	w.left.Store(watched)
	return w
}

// inspect looks at a decided request, if it is one of the first. It returns nil, or a function to call when the handler
// has returned.
func (w *watch) inspect(f *front.Front[*http.Request, Answer], a *ask, r *http.Request) func() {
	if len(a.Requests) == 0 || a.Err != nil || !w.looks() {
		return nil
	}
	return w.look(f, a, r)
}

// looks reports whether to inspect one more request.
func (w *watch) looks() bool { return w.left.Load() > 0 && w.left.Add(-1) >= 0 }

func (w *watch) say(m mistake, arguments ...any) {
	if w.said[m].CompareAndSwap(false, true) {
		w.logger.Warn(advice[m], arguments...)
	}
}

// saidMade suppresses further lines about middlewares made within requests, because each of them is a new one.
var saidMade atomic.Bool

// madeInRequest notices a middleware made by a handler.
func (w *watch) madeInRequest() {
	var callers [128]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for more := true; more; {
		var frame runtime.Frame
		if frame, more = frames.Next(); strings.HasPrefix(frame.Function, "net/http.serverHandler.") {
			if saidMade.CompareAndSwap(false, true) {
				w.say(madeInRequest)
			}
			return
		}
	}
}

// mark is what a middleware counted for a request, for the middlewares inside it.
type mark struct {
	engine   weir.Engine
	requests []weir.Request
	outer    *mark
}

// marks holds the marks of current requests by their URL, which copies of a request share. A context would be a
// cleaner place, but handlers would then see another *http.Request for the first requests than for later ones.
var marks sync.Map // *url.URL to *mark

// look inspects an admitted request, and leaves a mark for inner middlewares until the function is called.
func (w *watch) look(f *front.Front[*http.Request, Answer], a *ask, r *http.Request) (done func()) {
	found, _ := marks.Load(r.URL)
	outer, _ := found.(*mark)
	for i := range a.Requests {
		q := &a.Requests[i]
		if _, err := netip.ParseAddrPort(q.Key); err == nil {
			w.say(keyWithPort, "rule", q.Rule.Name(), "key", q.Key)
		}
		for m := outer; m != nil; m = m.outer {
			if m.counts(f.Engine, q) {
				w.say(countedTwice, "rule", q.Rule.Name(), "key", q.Key)
			}
		}
	}
	w.lookAtKeys(f, a)
	own := &mark{engine: f.Engine, requests: append([]weir.Request(nil), a.Requests...), outer: outer}
	marks.Store(r.URL, own)
	return func() {
		if outer == nil {
			marks.Delete(r.URL)
		} else {
			marks.CompareAndSwap(r.URL, own, outer) // unless the outer handler has returned before
		}
	}
}

// lookAtKeys records the rules that have found a key, and logs the others after the last inspected request.
func (w *watch) lookAtKeys(f *front.Front[*http.Request, Answer], a *ask) {
	for i, at := range a.At {
		if a.Requests[i].Key != "" {
			w.keyed[at].Store(true)
		}
	}
	for at := range f.Options.Rules {
		if w.left.Load() <= 0 && !w.keyed[at].Load() {
			w.say(noKeys, "rule", f.RuleName(at))
		}
	}
}

func (m *mark) counts(e weir.Engine, q *weir.Request) bool {
	if !sameEngine(m.engine, e) {
		return false
	}
	for i := range m.requests {
		if m.requests[i].Rule.Name() == q.Rule.Name() && m.requests[i].Key == q.Key {
			return true
		}
	}
	return false
}

// sameEngine compares the engines below all functions and layers. Some engine types are not comparable.
func sameEngine(a, b weir.Engine) (same bool) {
	defer func() { _ = recover() }()
	return innermost(a) == innermost(b)
}

func innermost(e weir.Engine) weir.Engine {
	for {
		over, ok := e.(interface{ Unwrap() weir.Engine })
		if !ok {
			return e
		}
		e = over.Unwrap()
	}
}
