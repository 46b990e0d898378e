package redislimit

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/internal/redistest"
)

func TestAServerThatMayEvictIsWarnedOf(t *testing.T) {
	tests := []struct {
		config []string
		want   string // a part of the one warning; empty if there is none
	}{
		{nil, ""},
		{[]string{"maxmemory 100mb", "maxmemory-policy noeviction"}, ""},
		{[]string{"maxmemory-policy allkeys-lru"}, ""}, // and no maxmemory: never full
		{[]string{"maxmemory 100mb", "maxmemory-policy allkeys-lru"}, "may evict keys when it reaches maxmemory of 104857600 bytes"},
		{[]string{"maxmemory 100mb", "maxmemory-policy allkeys-random"}, "set maxmemory-policy noeviction (it is allkeys-random)"},
		{[]string{"maxmemory 100mb", "maxmemory-policy volatile-ttl"}, "it is volatile-ttl"},
	}
	for _, tt := range tests {
		server := redistest.Start(t, tt.config...)
		engine, err := Open("redis://"+server.Addr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		warnings, err := engine.Warnings(t.Context())
		got := strings.Join(warnings, "\n")
		if err != nil || tt.want == "" && got != "" || !strings.Contains(got, tt.want) || strings.Count(got, "\n") != 0 {
			t.Errorf("Warnings with %q = %q, %v, want one with %q", tt.config, warnings, err, tt.want)
		}
	}
}

func TestEveryNodeOfAClusterIsAskedForWarnings(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	cluster.Nodes[1].Do("CONFIG", "SET", "maxmemory", "100mb")
	cluster.Nodes[1].Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: cluster.Addrs()[:1], DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	engine, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := engine.Warnings(t.Context())
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], cluster.Nodes[1].Addr) {
		t.Errorf("Warnings = %q, %v, want one of %s", warnings, err, cluster.Nodes[1].Addr)
	}
}

func TestAServerThatDoesNotAnswerIsNoWarningButAnError(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "default", "-info")
	engine, err := Open("redis://"+server.Addr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if warnings, err := engine.Warnings(t.Context()); err == nil || len(warnings) != 0 || !strings.Contains(err.Error(), "INFO memory of "+server.Addr) {
		t.Errorf("Warnings = %q, %v, want an error that names INFO memory of %s", warnings, err, server.Addr)
	}
}
