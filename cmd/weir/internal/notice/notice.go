// Package notice tells when keys near their quotas: once for each of 80, 95 and 100 per cent of a limit, a window and a key, however
// many daemons decide.
//
// A decision goes this way:
//
//  1. [Notices.Decided] sees it on the goroutine of its caller (watch.go). If the key may have passed a threshold since the last look,
//     it queues a look. It asks nobody and waits for nothing.
//  2. [Notices.Run] looks at the units that are used, in the engine, and takes a mark for each threshold that they have reached
//     (look.go). A mark is the only slot of [MarkRule] for its key, so one daemon gets it. It ends with the window.
//  3. Each mark that was taken is an [Event]: a line of the log, and a signed request to the webhook (send.go).
package notice

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"log/slog"
	"time"

	"github.com/weirflow/weir"
)

// MarkRule is the name of the rule whose keys are marks. No policy stands in for the engine at it: a mark that other daemons cannot see
// would tell twice.
const MarkRule = "~noticed"

// Options configure Notices.
type Options struct {
	// Engine decides by the limits that it is asked for, without overrides and unobserved.
	Engine weir.Engine
	// Overridden returns requests by the overrides in force. Default: as they are.
	Overridden func([]weir.Request) []weir.Request
	Log        *slog.Logger
	// Hook receives the events. Nil has them in the log alone.
	Hook *Hook
	// Keys has events name keys. Otherwise they have an HMAC of them, under the secret of the hook or one of this process.
	Keys bool
	// Shared says that other daemons use the engine.
	Shared bool
}

// Notices report thresholds. They are safe for concurrent use.
type Notices struct {
	options Options
	memory  *weir.Memory // the engine, unless others share it
	secret  []byte       // of the HMAC of keys
	seed    maphash.Seed
	seen    table
	looks   chan look
	logs    *weir.Limiter
	counts  counts
	spread  int64 // how much sooner than a threshold to look, because other daemons count too
}

// The bounds of notices. A key that finds no room is looked at again at a later call.
const (
	mostLooks    = 4096
	otherDaemons = 8 // that may count as much as this one without making it late
	logsPerSec   = 10
)

// New returns Notices. Run makes them tell.
func New(o Options) *Notices {
	logs, _ := weir.New(weir.TokenBucket{Rate: weir.Rate{Count: logsPerSec, Period: time.Second}, Burst: 100}) // a good limit
	n := &Notices{options: o, secret: []byte(rand.Text()), seed: maphash.MakeSeed(), looks: make(chan look, mostLooks), logs: logs, spread: 1}
	n.memory, _ = weir.Find[*weir.Memory](o.Engine)
	if o.Hook != nil {
		n.secret = o.Hook.secrets[0]
	}
	if o.Shared {
		n.spread = otherDaemons
	}
	if o.Overridden == nil {
		n.options.Overridden = func(requests []weir.Request) []weir.Request { return requests }
	}
	return n
}

// Run looks and sends until the context ends, and then sends what waits, within a second.
func (n *Notices) Run(ctx context.Context) {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if n.options.Hook != nil {
			n.options.Hook.run(ctx, n.options.Log)
		}
	}()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case first := <-n.looks:
			n.lookAt(ctx, n.batch(first))
		}
	}
	<-sent
}

// masked returns what stands for a key in events: the first 32 hexadecimal digits of the HMAC-SHA256 of "key:" and the key.
func (n *Notices) masked(key string) string {
	mac := hmac.New(sha256.New, n.secret)
	mac.Write([]byte("key:" + key))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// tell logs an event and queues it for the hook.
func (n *Notices) tell(e *Event) {
	if n.options.Keys {
		e.Data.Key = &e.key
	} else {
		e.Data.KeyHMAC = n.masked(e.key)
	}
	if n.logs.Allow() {
		args := []any{"rule", e.Data.Rule, "limit", e.Data.Limit, "percent", e.Data.Percent, "used", e.Data.Used, "units", e.Data.Units}
		if n.options.Keys {
			args = append(args, "key", e.key[:min(len(e.key), keyInLog)])
		} else {
			args = append(args, "key_hmac", e.Data.KeyHMAC)
		}
		if quiet := n.counts.unlogged.Swap(0); quiet > 0 {
			args = append(args, "not_logged_before", quiet)
		}
		n.options.Log.Info("a key has reached a threshold of its quota", args...)
	} else {
		n.counts.unlogged.Add(1)
	}
	n.counts.told.Add(1)
	if n.options.Hook != nil {
		n.options.Hook.add(e)
	}
}

// keyInLog bounds the bytes of a key in the log.
const keyInLog = 64
