package redislimit

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// documentedACL is the line of docs/howto/redis.md that makes the user, or another one that begins so.
func documentedACL(t *testing.T, begins string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/howto/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, begins) {
			return strings.Fields(strings.ReplaceAll(line, "PASSWORD", "secret"))
		}
	}
	t.Fatalf("docs/howto/redis.md has no line that begins with %s", begins)
	return nil
}

func TestTheDocumentedACLIsEnough(t *testing.T) {
	t.Parallel()
	acl := documentedACL(t, "ACL SETUSER weir on")
	one := redistest.Start(t)
	one.Do(acl...)
	useAs(t, "redis://weir:secret@"+one.Addr)

	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes {
		node.Do(acl...)
	}
	useAs(t, "redis-cluster://weir:secret@"+cluster.Nodes[0].Addr)

	sentinel := redistest.StartSentinel(t)
	sentinel.Master.Do(acl...)
	sentinel.Replica.Do(acl...)
	useAs(t, "redis-sentinel://weir:secret@"+strings.Join(sentinel.Addrs(), ",")+"/"+redistest.MasterSet)
}

// useAs runs every operation of an engine that needs another Redis command.
func useAs(t *testing.T, url string) {
	t.Helper()
	engine, err := Open(url, Options{})
	if err != nil {
		t.Fatalf("Open(%s): %v", url, err)
	}
	defer engine.Close()
	rule, err := weir.ParseRule("login=token bucket 5/h burst 5")
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"alice", "bob", "carol", "dave"} { // on several nodes
		if d, err := engine.Take(t.Context(), rule.For(key, 2)); err != nil || !d.Allowed {
			t.Errorf("%s: Take for key %d = %+v, %v, want allowed", url, i, d, err)
		}
		if err := engine.Reset(t.Context(), rule.For(key, 0)); err != nil {
			t.Errorf("%s: Reset for key %d: %v", url, i, err)
		}
	}
	if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "denies signals") {
		t.Errorf("%s: Warnings = %q, %v, want the one of the signals", url, warnings, err)
	}
}

// With the rights of the second line, waiting callers hear signals.
func TestTheDocumentedACLOfSignalsIsEnough(t *testing.T) {
	t.Parallel()
	rights, signals := documentedACL(t, "ACL SETUSER weir on"), documentedACL(t, "ACL SETUSER weir &weir")
	one := redistest.Start(t)
	one.Do(rights...)
	one.Do(signals...)
	hearAs(t, "redis://weir:secret@"+one.Addr, false)

	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes {
		node.Do(rights...)
		node.Do(signals...)
	}
	hearAs(t, "redis-cluster://weir:secret@"+cluster.Nodes[0].Addr, true)
}

// hearAs has a caller wait for a slot until it hears signals.
func hearAs(t *testing.T, url string, shard bool) {
	t.Helper()
	engine := openFor(t, url, Options{})
	slots := mustRule(t, "slots=concurrency 1 lease 1m")
	if _, err := engine.Reserve(t.Context(), slots.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	hears, stop := engine.Listen(slots.For("k", 1), func() {})
	defer stop()
	eventually(t, "the engine hears signals", func() error {
		if !hears() {
			return errors.New("none so far")
		}
		return nil
	})
	for _, c := range engine.signals.channels {
		if c.Shard != shard {
			t.Errorf("%s: the channel is one of a shard: %t, want %t", url, c.Shard, shard)
		}
	}
	if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("%s: Warnings = %q, %v, want none", url, warnings, err)
	}
}

// Each right that is missing is found.
func TestDeniedSignalsAreWarnedOf(t *testing.T) {
	server := redistest.Start(t)
	for _, rights := range []string{"-publish", "-subscribe", "resetchannels", "resetchannels &other:*"} {
		server.Do("ACL", "SETUSER", "weir", "reset", "on", ">secret", "~*", "+@all", "allchannels")
		server.Do(append([]string{"ACL", "SETUSER", "weir"}, strings.Fields(rights)...)...)
		engine := openFor(t, "redis://weir:secret@"+server.Addr, Options{})
		if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "denies signals") {
			t.Errorf("%s: Warnings = %q, %v, want the one of the signals", rights, warnings, err)
		}
	}
}
