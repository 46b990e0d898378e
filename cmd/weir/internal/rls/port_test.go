package rls

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthy "google.golang.org/grpc/health/grpc_health_v1"
	reflected "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// raw sends and receives the bytes of messages.
type raw struct{}

func (raw) Name() string                  { return "proto" }
func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (raw) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = slices.Clone(b)
	return nil
}

// The bytes are those of Envoy's definition of the service, written by hand, and a field that it may get one day.
func TestACallHasTheBytesOfEnvoy(t *testing.T) {
	conn, _, _, _ := startPort(t, time.Second, nil)
	entry := "\x0a\x0e" + "\x0a\x04path" + "\x12\x06/api/x"           // entries = 1: key = 1, value = 2
	hits, negative := "\x1a\x02\x08\x02", "\x20\x01"                  // hits_addend = 3: value = 1; is_negative_hits = 4
	limit := "\x08\x64\x10\x04" + "\x1a\x04path"                      // requests_per_unit = 1, unit = 2: DAY, name = 3
	status := "\x08\x01" + "\x12\x0a" + limit + "\x18\x62"            // code = 1: OK, current_limit = 2, limit_remaining = 3
	reset := "\x22\x04\x08\x80\xa3\x05"                               // duration_until_reset = 4: seconds = 1: 86400
	full := "\x08\x01" + "\x12\x0a" + limit + "\x18\x64" + "\x22\x00" // hits are back
	for _, c := range []struct{ call, want string }{
		{"\x0a\x04shop" + "\x12\x14" + entry + hits + "\x18\x09" + "\x7a\x01?", "\x08\x01" + "\x12\x16" + status + reset}, // domain = 1, descriptors = 2, hits_addend = 3
		{"\x0a\x04shop" + "\x12\x16" + entry + hits + negative, "\x08\x01" + "\x12\x12" + full},                           // overall_code = 1: OK, statuses = 2
	} {
		var got []byte
		if err := conn.Invoke(t.Context(), "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", []byte(c.call), &got, grpc.ForceCodec(raw{})); err != nil || string(got) != c.want {
			t.Errorf("%q:\ngot  %q, %v\nwant %q", c.call, got, err, c.want)
		}
	}
}

// startPort serves the rules of shop on a real socket. stop ends it, and ended gets the errors of Serve and Shutdown.
func startPort(t *testing.T, patience time.Duration, change func(*setup)) (conn *grpc.ClientConn, unready *atomic.Value, stop func(), ended <-chan error) {
	t.Helper()
	s, _ := newServer(t, shop, change)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unready = new(atomic.Value)
	unready.Store("")
	p := NewPort(s, PortOptions{Connections: 10, MaxAge: time.Hour, Grace: 5 * time.Second, Unready: func() string { return unready.Load().(string) }})
	done := make(chan error, 1)
	go func() { done <- p.Serve(l) }()
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		done <- p.Shutdown(ctx)
	}
	t.Cleanup(func() { _ = p.Shutdown(t.Context()) })
	conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, unready, stop, done
}

func TestThePortTellsItsHealthAndServices(t *testing.T) {
	conn, unready, stop, ended := startPort(t, time.Second, nil)
	health := healthy.NewHealthClient(conn)
	await := func(name string, want healthy.HealthCheckResponse_ServingStatus) {
		t.Helper()
		stream, err := health.Watch(t.Context(), &healthy.HealthCheckRequest{Service: name}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		for {
			got, err := stream.Recv()
			if err != nil {
				t.Fatalf("%q: %v, want %v", name, err, want)
			}
			if got.Status == want {
				return
			}
		}
	}
	for _, name := range append(names, "envoy.service.ratelimit.v3.RateLimitService") {
		await(name, healthy.HealthCheckResponse_SERVING)
	}
	unready.Store("the engine has failed")
	await("ratelimit", healthy.HealthCheckResponse_NOT_SERVING)
	unready.Store("")
	await("ratelimit", healthy.HealthCheckResponse_SERVING)

	list, err := reflected.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = list.Send(&reflected.ServerReflectionRequest{MessageRequest: &reflected.ServerReflectionRequest_ListServices{}})
	services, err := list.Recv()
	if err != nil || !strings.Contains(services.String(), `"envoy.service.ratelimit.v3.RateLimitService"`) {
		t.Errorf("got services %v (%v), want Envoy's among them", services, err)
	}
	_ = list.CloseSend()
	_ = conn.Close()
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("got %v, want a stop without an error", err)
		}
	}
}

// ending is a connection of a client that says when it ends.
type ending struct {
	net.Conn
	ended func()
}

func (e ending) Close() error {
	e.ended()
	return e.Conn.Close()
}

func TestAConnectionEndsAtItsGreatestAge(t *testing.T) {
	s, _ := newServer(t, shop, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := NewPort(s, PortOptions{Connections: 10, MaxAge: 10 * time.Millisecond, Grace: time.Second, Unready: func() string { return "" }})
	go func() { _ = p.Serve(l) }()
	t.Cleanup(func() { _ = p.Shutdown(t.Context()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		return ending{c, end}, err
	}
	conn, err := grpc.NewClient("passthrough:"+l.Addr().String(), grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	conn.Connect()
	select {
	case <-over:
	case <-ctx.Done():
		t.Fatalf("the connection is %v for a minute, want its end", conn.GetState())
	}
	for state := conn.GetState(); state != connectivity.Idle; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			t.Fatalf("the connection is %v, want Idle after its end", state)
		}
	}
}

func TestAStopFinishesCallsInFlight(t *testing.T) {
	begun, release := make(chan bool), make(chan bool)
	conn, _, stop, ended := startPort(t, time.Minute, func(o *setup) {
		o.desk.Engine = weir.Wrap(o.desk.Engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			begun <- true
			<-release
			return next(ctx, c)
		})
	})
	answer := make(chan error)
	go func() {
		_, err := service.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), asked(t, callOf(entries("path=/api/x"))))
		answer <- err
	}()
	<-begun
	go stop()
	select {
	case <-ended:
		t.Error("the port has stopped before the answer, want it to wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if err := <-answer; err != nil {
		t.Errorf("the call in flight got %v, want an answer", err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestAStopCutsOffCallsThatTakeTooLong(t *testing.T) {
	begun := make(chan bool)
	conn, _, stop, _ := startPort(t, 10*time.Millisecond, func(o *setup) {
		o.desk.Engine = weir.Wrap(o.desk.Engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			begun <- true
			<-ctx.Done()
			return weir.Answer{}, ctx.Err()
		})
	})
	answer := make(chan error)
	go func() {
		_, err := service.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), asked(t, callOf(entries("path=/api/x"))))
		answer <- err
	}()
	<-begun
	go stop()
	if err := <-answer; status.Code(err) != codes.Unavailable {
		t.Errorf("the call got %v, want Unavailable", err)
	}
}

func TestCallersNeedAScopeForWhatTheyAsk(t *testing.T) {
	plain := callOf(entries("path=/api/x"))
	override := callOf(entries("path=/api/x", `"limit":{"requestsPerUnit":3,"unit":"HOUR"}`))
	refund := callOf(entries("path=/api/x", `"isNegativeHits":true`))
	for _, c := range []struct {
		may     auth.Scope
		refused []string
	}{
		{auth.Local, nil},
		{auth.Take | auth.Dynamic, []string{refund}},
		{auth.Take | auth.Refund, []string{override}},
		{auth.Metrics, []string{plain, override, refund}},
		{0, []string{plain, override, refund}},
	} {
		conn, _, _, _ := startPort(t, time.Second, func(o *setup) { o.Auth = &auth.Port{Open: auth.Anyone("test", c.may)} })
		for _, call := range []string{plain, override, refund} {
			_, err := service.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), asked(t, call))
			want := codes.OK
			if slices.Contains(c.refused, call) {
				want = codes.PermissionDenied
			}
			if status.Code(err) != want {
				t.Errorf("scopes %v: %s: got %v, want %v", c.may, call, err, want)
			}
		}
	}
}

func TestJSONOverHTTPAnswersWithAStatus(t *testing.T) {
	s, _ := newServer(t, shop, nil)
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"domain": "shop", "descriptors": [{"entries": [{"key": "path", "value": "/api/x"}]}]}`, http.StatusOK, `"limitRemaining":99`},
		{`{"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "mallory"}]}]}`, http.StatusTooManyRequests, `"overallCode":"OVER_LIMIT"`},
		{`{"domain": "shop"}`, http.StatusBadRequest, "rls: descriptors are 0, want 1 to 1024"},
		{`{"domain"`, http.StatusBadRequest, "rls: the body is not a RateLimitRequest in JSON: "},
		{strings.Repeat(" ", maxCall+1), http.StatusBadRequest, "too large"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(c.body))
		s.ServeHTTP(w, r.WithContext(s.Auth.Mark(r.Context())))
		body, _ := io.ReadAll(w.Body)
		if text := strings.ReplaceAll(string(body), " ", ""); w.Code != c.status || !strings.Contains(text, strings.ReplaceAll(c.want, " ", "")) {
			t.Errorf("%.40s: got %d %s, want %d %s", c.body, w.Code, body, c.status, c.want)
		}
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestACallOfAStrangerIsNotRead(t *testing.T) {
	s, _ := newServer(t, shop, func(o *setup) { o.Auth = &auth.Port{} })
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/json", unread{t})
	s.ServeHTTP(w, r.WithContext(s.Auth.Mark(r.Context())))
	if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("in JSON: got %d and %v, want 401 and how to show who asks", w.Code, w.Header())
	}

	conn, _, _, _ := startPort(t, time.Second, func(o *setup) { o.Auth = &auth.Port{} })
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, service.RateLimitService_ShouldRateLimit_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new(service.RateLimitResponse)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("over gRPC, before any message: got %v, want Unauthenticated", err)
	}
	if _, err := healthy.NewHealthClient(conn).Check(t.Context(), &healthy.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
}

func TestFewLargeCallsAreInMemoryAtATime(t *testing.T) {
	s, _ := newServer(t, shop, nil)
	var bodies [mostLarge]*io.PipeWriter
	var ended sync.WaitGroup
	ask := func(body io.Reader) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/json", body)
		s.ServeHTTP(w, r.WithContext(s.Auth.Mark(r.Context())))
		return w.Code
	}
	space := strings.Repeat(" ", smallCall)
	for i := range bodies {
		var body *io.PipeReader
		body, bodies[i] = io.Pipe()
		ended.Go(func() { _ = ask(body) })
		_, _ = io.WriteString(bodies[i], space+" ") // returns when the last byte is read, so the call counts as large
	}
	if got := ask(strings.NewReader(space)); got != http.StatusServiceUnavailable {
		t.Errorf("one large call too many: got %d, want 503", got)
	}
	if got := ask(strings.NewReader(callOf(entries("path=/api/x")))); got != http.StatusOK {
		t.Errorf("a small call beside large ones: got %d, want 200", got)
	}
	for _, body := range bodies {
		_ = body.Close()
	}
	ended.Wait()
	if got := ask(strings.NewReader(callOf(entries("path=/api/x")) + space)); got != http.StatusOK {
		t.Errorf("a large call after the others: got %d, want 200", got)
	}
}
