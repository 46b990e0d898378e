package redislimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/servers"
)

// Warnings returns problems of the servers that the operator should fix. Call it at the start of a program: it sends
// INFO to every node that the client knows. To a server that is not a cluster, it also writes keys that expire within
// 5 seconds. A server that is too old is an error; Redis 6.0 is a warning.
//
// It looks for a cluster behind one address, for rights that signals to waiting callers need, and for eviction. A full
// server that may evict keys loses spent units, and volatile policies may evict every key of this engine, because every
// key has an expiry. With noeviction a full server refuses instead, which is an error and admits nothing.
func (e *Engine) Warnings(ctx context.Context) ([]string, error) {
	var warnings []string
	var problems []error
	nodes, err := e.client.Nodes()
	if err != nil {
		return nil, fmt.Errorf("redislimit: warnings: %w", errorOf(opOpen, fault.Of(err)))
	}
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		if server, err := nodes[addr](ctx, "server"); err == nil {
			problems = append(problems, servers.TooOld(addr, server["redis_version"]))
			if warning := servers.OldWarning(addr, server["redis_version"]); warning != "" {
				warnings = append(warnings, warning)
			}
		}
		memory, err := nodes[addr](ctx, "memory")
		if err != nil {
			problems = append(problems, fmt.Errorf("redislimit: warnings: INFO memory of %s: %w", addr, err))
			continue
		}
		if warning := evictionWarning(addr, memory); warning != "" {
			warnings = append(warnings, warning)
		}
		if warning := e.slotWarning(ctx, addr, nodes[addr]); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	if warning := e.signalWarning(ctx); warning != "" {
		warnings = append(warnings, warning)
	}
	return warnings, errors.Join(problems...)
}

// slotWarning returns a warning if the address leads to a cluster and OneSlot is not set. After it each call keeps to
// one slot. The first refusal reveals a server that does not answer INFO cluster; a test write reveals a proxy that
// refuses nothing.
func (e *Engine) slotWarning(ctx context.Context, addr string, node servers.Info) string {
	if e.options.OneSlot || e.client.Cluster() {
		return ""
	}
	if cluster, _ := node(ctx, "cluster"); cluster["cluster_enabled"] == "1" {
		e.calls.KeepToOneSlot()
	}
	if !e.calls.Crossed.Load() && e.scatters(ctx) {
		e.calls.KeepToOneSlot()
		return fmt.Sprintf("redis %s is a proxy that scatters the keys of one call over several servers: until now states were lost in them; say one_slot=1 in the URL, so that each call keeps to one slot from the start", addr)
	}
	if !e.calls.Crossed.Load() {
		return ""
	}
	return fmt.Sprintf("redis %s is a cluster behind one address: each call keeps to one slot, and several keys are decided lane by lane; say so from the start with one_slot=1 in the URL, or lead to its nodes with redis-cluster://", addr)
}

// evictionWarning returns "" if the server never evicts.
func evictionWarning(addr string, memory map[string]string) string {
	policy, known := memory["maxmemory_policy"]
	switch {
	case !known:
		return fmt.Sprintf("redis %s does not say whether it evicts keys; if it does, spent budgets come back", addr)
	case policy == "noeviction":
		return ""
	case memory["maxmemory"] == "0":
		return "" // without a bound it is never full
	}
	return fmt.Sprintf("redis %s may evict keys when it reaches maxmemory of %s bytes, and a budget that was spent comes back with its key; set maxmemory-policy noeviction (it is %s)", addr, memory["maxmemory"], policy)
}

// A proxy may send each call to the server of its first key and ignore the others. The states of the other keys would
// then be on several servers.
const (
	scatterLanes = 16     // keys, each on a lane of its own
	scatterEnds  = "5000" // ms until they expire
	scatterWrite = `for _, key in ipairs(KEYS) do redis.call('SET', key, 'probe', 'PX', ARGV[1], 'NX') end return ''`
	scatterRead  = `local n = redis.pcall('STRLEN', KEYS[1]) return n == 0 and '' or 'found'`
)

// scatters reports whether keys written by one call are missing when read one by one. It returns false if that is
// unknown.
func (e *Engine) scatters(ctx context.Context) bool {
	names := make([]string, min(scatterLanes, e.options.Lanes))
	for lane := range names {
		names[lane] = e.keys.Probe(lane)
	}
	if _, err := e.client.Eval(ctx, scatterWrite, names, scatterEnds); err != nil {
		return false
	}
	for i := range names {
		if found, err := e.client.Eval(ctx, scatterRead, names[i:i+1]); err == nil && found == "" {
			return true
		}
	}
	return false
}

// signalWarning returns a warning if the server denies the user signals to waiting callers.
func (e *Engine) signalWarning(ctx context.Context) string {
	if e.client.Known() == nil {
		return ""
	}
	denied := e.trySignal(ctx, e.client.Cluster())
	if strings.Contains(denied, "unknown command") { // Redis before 7.0 has no SPUBLISH
		denied = e.trySignal(ctx, false)
	}
	if denied == "" {
		return ""
	}
	return fmt.Sprintf("redis denies signals to callers that wait for slots (%s): they ask again every 50 ms instead; docs/howto/redis.md lists the rights", denied)
}

// trySignal returns the server's refusal of a subscription, or of a message to it.
func (e *Engine) trySignal(ctx context.Context, shard bool) (denied string) {
	ctx, cancel := context.WithTimeout(ctx, trySignalFor)
	defer cancel()
	probe, published := e.client.Channel(e.keys.Heads[0]+"probe-"+rand.Text()[:8], shard), make(chan error, 1)
	subscribed := sync.OnceFunc(func() {
		go func() {
			published <- probe.Publish(ctx, probeSignal)
			cancel()
		}()
	})
	if text, refused := fault.Refusal(probe.Subscribe(ctx, subscribed, func(string) {})); refused {
		return text
	}
	_ = probe.Unsubscribe(context.WithoutCancel(ctx))
	select {
	case err := <-published:
		denied, _ = fault.Refusal(err)
	default: // neither was answered in time
	}
	return denied
}
