package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	test "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/grpclimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/layer"
)

var (
	silent = slog.New(slog.DiscardHandler)
	start  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

const (
	unaryMethod  = "/grpc.testing.TestService/UnaryCall"
	duplexMethod = "/grpc.testing.TestService/FullDuplexCall"
)

// service echoes. inside is called by each handler of a unary call, and closing by each handler of a stream at its end.
type service struct {
	test.UnimplementedTestServiceServer
	inside  func(context.Context)
	reached int
	mu      sync.Mutex
}

func (s *service) UnaryCall(ctx context.Context, r *test.SimpleRequest) (*test.SimpleResponse, error) {
	s.mu.Lock()
	s.reached++
	s.mu.Unlock()
	if s.inside != nil {
		s.inside(ctx)
	}
	return &test.SimpleResponse{Payload: r.Payload}, nil
}

func (s *service) FullDuplexCall(stream grpc.BidiStreamingServer[test.StreamingOutputCallRequest, test.StreamingOutputCallResponse]) error {
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&test.StreamingOutputCallResponse{Payload: m.Payload}); err != nil {
			return err
		}
	}
}

func (s *service) StreamingInputCall(stream grpc.ClientStreamingServer[test.StreamingInputCallRequest, test.StreamingInputCallResponse]) error {
	for {
		if _, err := stream.Recv(); err == io.EOF {
			return stream.SendAndClose(&test.StreamingInputCallResponse{})
		} else if err != nil {
			return err
		}
	}
}

// serve runs a limited server on a port of the loopback interface.
func serve(t *testing.T, limited *grpclimit.Server, s *service) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var options []grpc.ServerOption
	if limited != nil {
		options = append(options, grpc.UnaryInterceptor(limited.Unary), grpc.StreamInterceptor(limited.Stream))
	}
	server := grpc.NewServer(options...)
	test.RegisterTestServiceServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return listener.Addr().String()
}

// dial connects from an address of the loopback interface.
func dial(t *testing.T, addr, from string, options ...grpc.DialOption) test.TestServiceClient {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		}))
	conn, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return test.NewTestServiceClient(conn)
}

func newServer(t *testing.T, o grpclimit.Options) *grpclimit.Server {
	t.Helper()
	if o.Logger == nil {
		o.Logger = silent
	}
	o.Engine = layertest.Around(o.Engine)
	s, err := grpclimit.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// limit is a Server with one rule on an engine with a clock.
func limit(t *testing.T, o grpclimit.Options, rules ...grpclimit.Rule) (*grpclimit.Server, *httplimittest.Clock) {
	t.Helper()
	clock := httplimittest.NewClock(start)
	o.Engine, o.Rules = clock.Engine(), rules
	return newServer(t, o), clock
}

func mustRule(t *testing.T, text string) *weir.Rule {
	t.Helper()
	rule, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func unary(ctx context.Context, client test.TestServiceClient) error {
	_, err := client.UnaryCall(ctx, &test.SimpleRequest{})
	return err
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

// details returns the delay and the subjects of a refusal.
func details(t *testing.T, err error) (retry time.Duration, subjects []string) {
	t.Helper()
	retry = -1
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			retry = detail.RetryDelay.AsDuration()
		case *errdetails.QuotaFailure:
			for _, violation := range detail.Violations {
				subjects = append(subjects, violation.Subject)
			}
		}
	}
	return retry, subjects
}

func TestARefusedCallSaysWhenToRetryAndWhichLimit(t *testing.T) {
	limited, clock := limit(t, grpclimit.Options{}, grpclimit.Rule{Limit: "api=3/m"})
	s := &service{}
	addr := serve(t, limited, s)
	client, other := dial(t, addr, "127.0.0.1"), dial(t, addr, "127.0.0.2")
	for range 3 {
		wantCode(t, "within the limit", unary(t.Context(), client), codes.OK)
	}
	clock.Advance(5 * time.Second)
	err := unary(t.Context(), client)
	wantCode(t, "above the limit", err, codes.ResourceExhausted)
	if retry, subjects := details(t, err); retry != 15*time.Second || len(subjects) != 1 || subjects[0] != "api" {
		t.Errorf("refused by %q with a retry in %v, want api and 15s", subjects, retry)
	}
	wantCode(t, "another client", unary(t.Context(), other), codes.OK)
	clock.Advance(15 * time.Second)
	wantCode(t, "retry after the delay", unary(t.Context(), client), codes.OK)
	if s.reached != 5 {
		t.Errorf("the handler was reached %d times, want 5", s.reached)
	}
}

func TestAStreamIsRefusedAtItsOpening(t *testing.T) {
	limited, _ := limit(t, grpclimit.Options{}, grpclimit.Rule{Limit: "client=2/m"})
	client := dial(t, serve(t, limited, &service{}), "127.0.0.1")
	for i := range 3 {
		err := talk(t, client, 5)
		want := codes.OK
		if i == 2 {
			want = codes.ResourceExhausted
		}
		wantCode(t, "stream "+string(rune('1'+i)), err, want)
		if retry, subjects := details(t, err); err != nil && (retry != 30*time.Second || subjects[0] != "client") {
			t.Errorf("refused by %q with a retry in %v, want client and 30s", subjects, retry)
		}
	}
}

// talk sends n messages on a stream and waits for the echo of each.
func talk(t *testing.T, client test.TestServiceClient, n int) error {
	t.Helper()
	stream, err := client.FullDuplexCall(t.Context())
	if err != nil {
		return err
	}
	for range n {
		if err := stream.Send(&test.StreamingOutputCallRequest{}); err != nil && err != io.EOF {
			return err
		}
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	_ = stream.CloseSend()
	if _, err = stream.Recv(); err == io.EOF {
		return nil
	}
	return err
}

func TestEachMessageOfAStreamIsCharged(t *testing.T) {
	size := func(c grpclimit.RPC) int64 {
		if m, ok := c.Message.(*test.StreamingOutputCallRequest); ok {
			return int64(len(m.Payload.GetBody())) + 1
		}
		return 1
	}
	limited, clock := limit(t, grpclimit.Options{EachMessage: true}, grpclimit.Rule{Limit: "client=4/m and concurrency 1", Cost: size})
	client := dial(t, serve(t, limited, &service{}), "127.0.0.1")
	err := talk(t, client, 5)
	wantCode(t, "5 messages of 4", err, codes.ResourceExhausted)
	if retry, _ := details(t, err); retry != 15*time.Second {
		t.Errorf("retry in %v, want 15s", retry)
	}
	clock.Advance(time.Minute)
	eventually(t, "a stream whose slot is free again", func() bool { return talk(t, client, 4) == nil })
	clock.Advance(time.Minute)
	wantCode(t, "a unary call is charged as usual", unary(t.Context(), client), codes.OK)
}

func TestARefusalByARateBesideFreeSlotsSaysWhenToRetry(t *testing.T) {
	limited, _ := limit(t, grpclimit.Options{}, grpclimit.Rule{Limit: "client=concurrency 1 and 1/h"})
	client := dial(t, serve(t, limited, &service{}), "127.0.0.1")
	wantCode(t, "within the limit", unary(t.Context(), client), codes.OK)
	if retry, _ := details(t, unary(t.Context(), client)); retry != time.Hour {
		t.Errorf("retry in %v, want 1h: the slot is free", retry)
	}
}

func TestSlotsAreHeldForTheCall(t *testing.T) {
	var client test.TestServiceClient
	limited, _ := limit(t, grpclimit.Options{}, grpclimit.Rule{Limit: "work=100/m and concurrency 1 lease 1h"})
	s := &service{}
	depth := 0
	s.inside = func(ctx context.Context) {
		if depth++; depth > 1 {
			t.Error("two calls hold one slot")
			return
		}
		err := unary(context.WithoutCancel(ctx), client)
		wantCode(t, "while the slot is held", err, codes.ResourceExhausted)
		if retry, _ := details(t, err); retry != time.Second {
			t.Errorf("retry in %v while the slot is held, want 1s", retry)
		}
	}
	client = dial(t, serve(t, limited, s), "127.0.0.1")
	for range 3 {
		depth = 0
		wantCode(t, "one after the other", unary(t.Context(), client), codes.OK)
	}
	// A stream holds its slot until it ends.
	ctx, leave := context.WithCancel(t.Context())
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&test.StreamingOutputCallRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "while the stream holds the slot", unary(t.Context(), client), codes.ResourceExhausted)
	leave()
	s.inside = nil
	eventually(t, "a call after the client has left the stream", func() bool { return unary(t.Context(), client) == nil })
}

func TestAPanickingHandlerReleasesItsSlot(t *testing.T) {
	limited, _ := limit(t, grpclimit.Options{}, grpclimit.Rule{Limit: "client=concurrency 1"})
	info := &grpc.UnaryServerInfo{FullMethod: unaryMethod}
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the handler was not reached: its slot is held")
				}
			}()
			_, _ = limited.Unary(t.Context(), nil, info, func(context.Context, any) (any, error) { panic("handler") })
		}()
	}
}

// All fronts make the same key of an API key.
func TestHashedMakesTheKeyOfEveryFront(t *testing.T) {
	key := grpclimit.Hashed(grpclimit.Metadata("X-Api-Key"))
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-api-key", "k"))
	if got, want := key(grpclimit.RPC{Context: ctx}), front.HashOf("k"); got != want || len(want) != 32 {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := key(grpclimit.RPC{Context: t.Context()}); got != "" {
		t.Errorf("without metadata: got %q, want no key", got)
	}
}

func TestPlansMissingKeysAndRulesTogether(t *testing.T) {
	plans := map[string]*weir.Rule{"acme": mustRule(t, "plan=3/m"), "tiny": mustRule(t, "plan=1/m")}
	tenant := grpclimit.Metadata("Tenant")
	limited, _ := limit(t, grpclimit.Options{},
		grpclimit.Rule{Plan: func(c grpclimit.RPC) *weir.Rule { return plans[tenant(c)] }, Key: tenant, Missing: grpclimit.MissingRefused},
		grpclimit.Rule{Limit: "all=5/m", Key: grpclimit.Everyone},
		grpclimit.Rule{Limit: "user=1/h", Key: grpclimit.Metadata("user"), Missing: grpclimit.MissingUnlimited})
	client := dial(t, serve(t, limited, &service{}), "127.0.0.1")
	for _, step := range []struct {
		tenant, user string
		want         codes.Code
		by           string
	}{
		{"acme", "", codes.OK, ""},
		{"acme", "u", codes.OK, ""},
		{"acme", "u", codes.ResourceExhausted, "user"}, // and nothing is taken from acme
		{"acme", "", codes.OK, ""},
		{"acme", "", codes.ResourceExhausted, "plan"},
		{"tiny", "", codes.OK, ""},
		{"tiny", "", codes.ResourceExhausted, "plan"},
		{"", "", codes.Unavailable, ""},
		{"none", "", codes.Unavailable, ""},
	} {
		ctx := t.Context()
		if step.tenant != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "tenant", step.tenant)
		}
		if step.user != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "user", step.user)
		}
		err := unary(ctx, client)
		wantCode(t, step.tenant+" "+step.user, err, step.want)
		if _, subjects := details(t, err); step.by != "" && (len(subjects) != 1 || subjects[0] != step.by) {
			t.Errorf("%s %s: refused by %q, want %s", step.tenant, step.user, subjects, step.by)
		}
	}
	limited, _ = limit(t, grpclimit.Options{}, grpclimit.Rule{Limit: "key=1/m", Key: tenant, Missing: grpclimit.MissingRefused})
	wantCode(t, "no tenant", unary(t.Context(), dial(t, serve(t, limited, &service{}), "127.0.0.1")), codes.InvalidArgument)
	limited, _ = limit(t, grpclimit.Options{}, grpclimit.Rule{Limit: "key=1/m", Key: tenant})
	client = dial(t, serve(t, limited, &service{}), "127.0.0.1")
	wantCode(t, "the first without a key", unary(t.Context(), client), codes.OK)
	wantCode(t, "the second without a key shares", unary(t.Context(), client), codes.ResourceExhausted)
}

func TestASkippedCallAndADryRunAreAdmitted(t *testing.T) {
	var refused atomic.Int64
	limited, _ := limit(t, grpclimit.Options{DryRun: func(d layer.ShadowDecision) {
		if !d.Shadow.Allowed {
			refused.Add(1)
		}
	}}, grpclimit.Rule{Limit: "client=1/h"})
	client := dial(t, serve(t, limited, &service{}), "127.0.0.1")
	for range 3 {
		wantCode(t, "dry run", unary(t.Context(), client), codes.OK)
	}
	eventually(t, "2 of 3 refusals aside", func() bool { return refused.Load() == 2 })
	limited, _ = limit(t, grpclimit.Options{Skip: func(c grpclimit.RPC) bool { return c.Method == unaryMethod }}, grpclimit.Rule{Limit: "client=1/h"})
	client = dial(t, serve(t, limited, &service{}), "127.0.0.1")
	for range 3 {
		wantCode(t, "skipped", unary(t.Context(), client), codes.OK)
	}
	wantCode(t, "another method", talk(t, client, 1), codes.OK)
	wantCode(t, "another method again", talk(t, client, 1), codes.ResourceExhausted)
}

// remote returns an engine whose calls do makes, perhaps with engine. A reservation is a take, and no caller finds engine.
func remote(engine weir.Engine, do func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error)) (e weir.Engine) {
	e = weir.Kit.EngineOf(func(ctx context.Context, c weir.Call) (weir.Answer, error) {
		ctx, cancel := enginekit.Bound(ctx, &c)
		defer cancel()
		if c.Op == weir.OpReserve {
			return weir.Kit.Reserve(ctx, e, c)
		}
		return do(ctx, c, engine.Do)
	}, engine.Check)
	return e
}

// broken returns an engine whose takes fail.
func broken(engine weir.Engine) weir.Engine {
	return remote(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		switch c.Op {
		case weir.OpTake, weir.OpReserveAhead, weir.OpEach:
			return weir.Answer{}, errors.New("no route to 10.1.2.3")
		}
		return next(ctx, c)
	})
}

func TestAnEngineThatFailsFollowsThePolicy(t *testing.T) {
	engine := broken(weir.NewMemory(weir.MemoryOptions{}))
	for policy, want := range map[layer.Policy]codes.Code{layer.Deny: codes.Unavailable, layer.Allow: codes.OK} {
		limited := newServer(t, grpclimit.Options{Engine: engine, Guard: layer.GuardOptions{OnFailure: policy, Peers: 1}, Rules: []grpclimit.Rule{{Limit: "client=1/m"}}})
		err := unary(t.Context(), dial(t, serve(t, limited, &service{}), "127.0.0.1"))
		wantCode(t, "a failing engine", err, want)
		if err != nil && strings.Contains(err.Error(), "10.1.2.3") {
			t.Errorf("%v tells clients about the engine", err)
		}
	}
	negative := grpclimit.Rule{Limit: "client=1/m", Cost: func(grpclimit.RPC) int64 { return -1 }}
	limited := newServer(t, grpclimit.Options{Guard: layer.GuardOptions{OnFailure: layer.Allow}, Rules: []grpclimit.Rule{negative}})
	wantCode(t, "Allow and a call that no engine could decide", unary(t.Context(), dial(t, serve(t, limited, &service{}), "127.0.0.1")), codes.Unavailable)
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}
