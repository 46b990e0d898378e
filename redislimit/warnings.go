package redislimit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// Warnings returns problems of the servers that the operator should fix. Call it at the start of a program: it sends
// INFO to every node that the client knows. To a server that is not a cluster, it also writes keys that expire within
// 5 seconds. A server that is too old is an error; Redis 6.0 is a warning.
//
// It looks for a cluster behind one address, for rights that signals to waiting callers need, and for eviction. A full server that may evict keys loses spent units,
// and volatile policies may evict every key of this engine, because every key has an expiry. With noeviction a full
// server refuses instead, which is an error and admits nothing.
func (e *Engine) Warnings(ctx context.Context) ([]string, error) {
	var warnings []string
	var problems []error
	nodes, err := e.nodes()
	if err != nil {
		return nil, fmt.Errorf("redislimit: warnings: %w", err)
	}
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		if server, err := nodes[addr](ctx, "server"); err == nil {
			problems = append(problems, tooOld(addr, server["redis_version"]))
			if warning := oldWarning(addr, server["redis_version"]); warning != "" {
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

// info requests a section of INFO from a node.
type info func(ctx context.Context, section string) (map[string]string, error)

// nodes returns the nodes that the client knows, by address. For a client other than rueidis it returns the node that
// answers.
func (e *Engine) nodes() (map[string]info, error) {
	if e.sender != nil {
		return map[string]info{"of the client": func(ctx context.Context, section string) (map[string]string, error) {
			text, err := e.sender.Send(ctx, "INFO", section)
			return infoFields(text), err
		}}, nil
	}
	client, err := e.connected()
	if err != nil {
		return nil, err
	}
	nodes := map[string]info{}
	for addr, node := range client.Nodes() {
		nodes[addr] = func(ctx context.Context, section string) (map[string]string, error) {
			text, err := node.Do(ctx, node.B().Info().Section(section).Build()).ToString()
			return infoFields(text), err
		}
	}
	return nodes, nil
}

// slotWarning returns a warning if the address leads to a cluster and OneSlot is not set. From then on each call
// keeps to one slot. The first refusal reveals a server that does not answer INFO cluster; a test write reveals a
// proxy that refuses nothing.
func (e *Engine) slotWarning(ctx context.Context, addr string, node info) string {
	if client := e.known(); e.options.OneSlot || client != nil && client.Mode() == rueidis.ClientModeCluster {
		return ""
	}
	if cluster, _ := node(ctx, "cluster"); cluster["cluster_enabled"] == "1" {
		e.keepToOneSlot()
	}
	if !e.crossed.Load() && e.scatters(ctx) {
		e.keepToOneSlot()
		return fmt.Sprintf("redis %s is a proxy that scatters the keys of one call over several servers: until now states were lost in them; say one_slot=1 in the URL, so that each call keeps to one slot from the start", addr)
	}
	if !e.crossed.Load() {
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

// infoFields reads the answer of INFO: lines of name:value.
func infoFields(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields
}
