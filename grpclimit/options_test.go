package grpclimit_test

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/grpclimit"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

// Each row is a mistake that NewServer refuses, and a part of the error.
func TestNewServerSaysWhatIsWrongWithItsOptions(t *testing.T) {
	rule := mustRule(t, "a=1/s")
	plan := func(grpclimit.RPC) *weir.Rule { return rule }
	one := []grpclimit.Rule{{Limit: "1/s"}}
	for _, tt := range []struct {
		options grpclimit.Options
		want    string
	}{
		{grpclimit.Options{}, "rules are 0, not 1 to 16"},
		{grpclimit.Options{Rules: []grpclimit.Rule{{}}}, "rules[0] has not exactly one of Limit, Rule and Plan"},
		{grpclimit.Options{Rules: []grpclimit.Rule{{Limit: "1/s", Rule: rule}}}, "rules[0] has not exactly one of"},
		{grpclimit.Options{Rules: []grpclimit.Rule{{Rule: rule, Plan: plan}}}, "rules[0] has not exactly one of"},
		{grpclimit.Options{Rules: []grpclimit.Rule{{Limit: "1/fortnight"}}}, `unexpected "1/fortnight"`},
		{grpclimit.Options{Rules: []grpclimit.Rule{{Limit: "1/s"}, {Limit: "2/s"}}}, `rules[1] has the name "client" of an earlier rule`},
		{grpclimit.Options{Rules: []grpclimit.Rule{{Limit: "leaky bucket 1/s queue 9"}, {Rule: rule}}}, "rules[0].limit leaky bucket 1/s queue 9 cannot be decided together"},
		{grpclimit.Options{Rules: []grpclimit.Rule{{Limit: "leaky bucket 1/s queue 11"}}}, "holds requests for up to 11s, above MaxWait of 10s"},
		{grpclimit.Options{Rules: []grpclimit.Rule{{Limit: "1/s", Missing: 7}}}, "rules[0].missing 7 is no policy"},
		{grpclimit.Options{Rules: one, MaxWait: -1}, "maxWait -1ns is negative"},
		{grpclimit.Options{Rules: one, Guard: layer.GuardOptions{Deadline: -1}}, "deadline -1ns is negative"},
		{grpclimit.Options{Rules: one, Guard: layer.GuardOptions{OnFailure: 9}}, "onFailure 9 is no policy"},
		{grpclimit.Options{Rules: []grpclimit.Rule{{Rule: &weir.Rule{}}}}, "was not made by NewRule"},
	} {
		if _, err := grpclimit.NewServer(tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewServer(%+v) = %v, want an error with %q", tt.options, err, tt.want)
		}
	}
	if _, err := grpclimit.PerKey("1/s", nil); err == nil {
		t.Error("PerKey takes a nil key, want an error")
	}
	if _, err := grpclimit.NewClient(grpclimit.ClientOptions{MaxWait: -1}); err == nil {
		t.Error("NewClient takes a negative MaxWait, want an error")
	}
	engine := weir.NewMemory(weir.MemoryOptions{})
	_, err := grpclimit.NewServer(grpclimit.Options{Engine: engine, Rules: one})
	_, clientErr := grpclimit.NewClient(grpclimit.ClientOptions{Engine: engine, Rules: one})
	for _, err := range []error{err, clientErr} {
		if err == nil || !strings.Contains(err.Error(), `rules[0].limit "1/s" has no name`) {
			t.Errorf("a rule without a name on an engine of the program: %v, want an error that says to name it", err)
		}
	}
	if _, err := grpclimit.NewClient(grpclimit.ClientOptions{Rules: []grpclimit.Rule{{Limit: "x"}}}); err == nil {
		t.Error("NewClient reads x as a limit, want an error")
	}
}

// Each row is a connection and its metadata, and the key that the call must count for.
func TestKeys(t *testing.T) {
	client, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	user, tenant := grpclimit.Metadata("User"), grpclimit.Metadata("tenant")
	both, behind := grpclimit.Combine(user, tenant), grpclimit.PeerBehind(client)
	for _, tt := range []struct {
		name   string
		key    grpclimit.Key
		peer   string
		fields []string
		want   string
	}{
		{"peer", grpclimit.Peer, "192.0.2.1", []string{"x-forwarded-for", "6.6.6.6"}, "192.0.2.1"},
		{"ipv6", grpclimit.Peer, "2001:db8:1:2:3::4", nil, "2001:db8:1:2::/64"},
		{"mapped", grpclimit.Peer, "::ffff:192.0.2.1", nil, "192.0.2.1"},
		{"no peer", grpclimit.Peer, "", nil, ""},
		{"behind a proxy", behind, "10.0.0.1", []string{"x-forwarded-for", "6.6.6.6, 192.0.2.1"}, "192.0.2.1"},
		{"not behind a proxy", behind, "192.0.2.9", []string{"x-forwarded-for", "6.6.6.6"}, "192.0.2.9"},
		{"metadata", user, "", []string{"user", "u"}, "u"},
		{"metadata twice", user, "", []string{"user", "u", "user", "v"}, ""},
		{"both", both, "", []string{"user", "u", "tenant", "t"}, "u|t"},
		{"one of both", both, "", []string{"user", "u"}, ""},
		{"separator", both, "", []string{"user", "u|t", "tenant", "x"}, `u\|t|x`},
		{"method", grpclimit.Method, "", nil, unaryMethod},
		{"everyone", grpclimit.Everyone, "", nil, "all"},
	} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(tt.fields...))
		if tt.peer != "" {
			ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(tt.peer), Port: 80}})
		}
		if got := tt.key(grpclimit.RPC{Context: ctx, Method: unaryMethod}); got != tt.want {
			t.Errorf("%s: key %q, want %q", tt.name, got, tt.want)
		}
	}
	unix := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.UnixAddr{Name: "@", Net: "unix"}})
	if got := grpclimit.Peer(grpclimit.RPC{Context: unix}); got != "" {
		t.Errorf("a Unix socket counts for %q, want no key", got)
	}
}
