package redislimit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Warnings says in words what about the servers an operator should mend, or
// nothing. It asks every node that the client knows, with INFO, and is for the
// start of a program: it does a few calls a node, and of one that is no cluster
// writes keys that end within 5 seconds.
// A server that is too old is an error.
//
// It looks for a cluster behind one address, and for eviction. A server that is full and may evict keys
// forgets budgets that are spent, and every key of this engine is one that
// volatile policies may evict, because it has an end. With noeviction a full
// server refuses instead, which is an error and admits nothing.
func (e *Engine) Warnings(ctx context.Context) ([]string, error) {
	var warnings []string
	var problems []error
	nodes := e.nodes()
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		if server, err := nodes[addr](ctx, "server"); err == nil {
			problems = append(problems, tooOld(addr, server["redis_version"]))
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
	return warnings, errors.Join(problems...)
}

// info asks a node for a section of INFO.
type info func(ctx context.Context, section string) (map[string]string, error)

// nodes are those that the client knows, by address. Of a client other than
// rueidis it is the one that answers.
func (e *Engine) nodes() map[string]info {
	if e.sender != nil {
		return map[string]info{"of the client": func(ctx context.Context, section string) (map[string]string, error) {
			text, err := e.sender.Send(ctx, "INFO", section)
			return infoFields(text), err
		}}
	}
	nodes := map[string]info{}
	for addr, node := range e.client.Nodes() {
		nodes[addr] = func(ctx context.Context, section string) (map[string]string, error) {
			text, err := node.Do(ctx, node.B().Info().Section(section).Build()).ToString()
			return infoFields(text), err
		}
	}
	return nodes
}

// slotWarning is empty unless the address leads to a cluster that the engine was
// not told of. Then each call keeps to one slot from now on. A server that does
// not answer INFO cluster is found out by its first refusal, and a proxy that
// refuses nothing by what it does to keys of several slots.
func (e *Engine) slotWarning(ctx context.Context, addr string, node info) string {
	if e.options.OneSlot {
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

// evictionWarning is empty if the server never evicts.
func evictionWarning(addr string, memory map[string]string) string {
	policy, known := memory["maxmemory_policy"]
	switch {
	case !known:
		return fmt.Sprintf("redis %s does not say whether it evicts keys; if it does, spent budgets come back", addr)
	case policy == "noeviction":
		return ""
	case memory["maxmemory"] == "0":
		return "" // there is no bound, so it is never full
	}
	return fmt.Sprintf("redis %s may evict keys when it reaches maxmemory of %s bytes, and a budget that was spent comes back with its key; set maxmemory-policy noeviction (it is %s)", addr, memory["maxmemory"], policy)
}

// infoFields reads what INFO answers: lines of name:value.
func infoFields(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields
}
