package redislimit

import (
	"os"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// documentedACL is the line of docs/redis.md that makes the user.
func documentedACL(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "ACL SETUSER weir ") {
			return strings.Fields(strings.ReplaceAll(line, "PASSWORD", "secret"))
		}
	}
	t.Fatal("docs/redis.md has no line that begins with ACL SETUSER weir")
	return nil
}

func TestTheDocumentedACLIsEnough(t *testing.T) {
	acl := documentedACL(t)
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
	if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("%s: Warnings = %q, %v, want none", url, warnings, err)
	}
}
