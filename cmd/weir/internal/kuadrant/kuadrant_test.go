package kuadrant

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/kuadrantpb"
	"github.com/weirflow/weir/cmd/weir/internal/rls"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/httplimit"
)

const models = `
rules:
  - {name: tokens, match: {domain: models, descriptor.user: "*"}, key: descriptor.user, limit: fixed window 1000/d}
  - {name: dear, match: {domain: models, descriptor.model: large}, key: descriptor.user, limit: fixed window 100000/d, cost: 10}
  - {name: office, match: {descriptor.user: boss}, unlimited: true}
  - {name: banned, match: {descriptor.user: mallory}, deny: true}
  - {name: queued, match: {domain: queues}, limit: leaky bucket 1/s queue 5}
`

// start serves rules on a real socket.
func start(t *testing.T, file string, may auth.Scope, compat bool) *grpc.ClientConn {
	t.Helper()
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	if compat {
		config.Foreign = &envoyproxy.Config{}
	}
	log := slog.New(slog.DiscardHandler)
	d := decide.New(decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Config: config, Log: log})
	envoy := rls.New(rls.Options{Desk: d, Headers: httplimit.NoHeaders, Log: log, Auth: &auth.Port{Open: auth.Anyone("test", may)}})
	s := &Server{Envoy: envoy, Holds: decide.HoldOptions{Life: time.Minute, Share: 50}}
	port := rls.NewPort(envoy, rls.PortOptions{Connections: 10, MaxAge: time.Hour, Grace: time.Second, Unready: func() string { return "" },
		Beside: func(services grpc.ServiceRegistrar) { kuadrantpb.RegisterRateLimitServiceServer(services, s) }})
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = port.Serve(on) }()
	t.Cleanup(func() { _ = port.Shutdown(t.Context()) })
	conn, err := grpc.NewClient(on.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// call makes a call of a JSON text, and returns the answer in JSON without spaces, or the code and the message of its error.
func call(t *testing.T, conn *grpc.ClientConn, method, text string) string {
	t.Helper()
	in, out := proto.Message(&service.RateLimitRequest{}), proto.Message(&service.RateLimitResponse{})
	switch method {
	case "Reserve":
		in, out = &kuadrantpb.ReserveRequest{}, &kuadrantpb.ReserveResponse{}
	case "Commit":
		in, out = &kuadrantpb.CommitRequest{}, &kuadrantpb.CommitResponse{}
	}
	if err := protojson.Unmarshal([]byte(text), in); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := conn.Invoke(t.Context(), "/kuadrant.service.ratelimit.v1.RateLimitService/"+method, in, out); err != nil {
		return fmt.Sprintf("%v: %s", status.Code(err), status.Convert(err).Message())
	}
	made, err := protojson.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(made), " ", "")
}

// of returns a call about descriptors of entries, with further fields.
func of(descriptors, more string) string {
	var list []string
	for pairs := range strings.SplitSeq(descriptors, "; ") {
		var entries []string
		for pair := range strings.SplitSeq(pairs, ",") {
			key, value, _ := strings.Cut(pair, "=")
			entries = append(entries, fmt.Sprintf(`{"key":%q,"value":%q}`, key, value))
		}
		list = append(list, `{"entries":[`+strings.Join(entries, ",")+`]}`)
	}
	return `{"domain":"models","descriptors":[` + strings.Join(list, ",") + `]` + more + `}`
}

// reserve returns the id of a hold.
func reserve(t *testing.T, conn *grpc.ClientConn, descriptors, more string) string {
	t.Helper()
	answer := call(t, conn, "Reserve", of(descriptors, more))
	id, ok := strings.CutPrefix(answer, `{"code":"OK","reservationId":"`)
	if !ok {
		t.Fatalf("Reserve: %s", answer)
	}
	return strings.TrimSuffix(id, `"}`)
}

// left fails unless this many tokens of a user are left.
func left(t *testing.T, conn *grpc.ClientConn, user string, want int) {
	t.Helper()
	answer := call(t, conn, "CheckRateLimit", of("user="+user, ""))
	if field := fmt.Sprintf(`"limitRemaining":%d,`, want); want > 0 && !strings.Contains(answer, field) || want == 0 && !strings.Contains(answer, "OVER_LIMIT") {
		t.Errorf("%s has %s, want %d left", user, answer, want)
	}
}

const ok, overLimit = `{"overallCode":"OK"}`, `{"code":"OVER_LIMIT"}`

func TestReportCountsAndRefusesNothing(t *testing.T) {
	conn := start(t, models, auth.Local, false)
	left(t, conn, "ann", 1000)
	for _, step := range []struct {
		call string
		left int
	}{
		{of("user=ann", ``), 999}, // 0 counts 1
		{of("user=ann", `,"hitsAddend":9`), 990},
		{of("user=ann; user=ann", `,"hitsAddend":40`), 910},
		{`{"domain":"models","descriptors":[{"entries":[{"key":"user","value":"ann"}],"hitsAddend":10}],"hitsAddend":5}`, 900},
		{`{"domain":"models","descriptors":[{"entries":[{"key":"user","value":"ann"}],"hitsAddend":0}],"hitsAddend":5}`, 900},
		{of("user=ann", `,"hitsAddend":890`), 10},
		{of("user=ann", `,"hitsAddend":4294967295`), 0},
		{of("user=ann; user=mallory; color=red; user=boss", `,"hitsAddend":1`), 0},
	} {
		if got := call(t, conn, "Report", step.call); got != ok {
			t.Errorf("%s: got %s, want %s", step.call, got, ok)
		}
		left(t, conn, "ann", step.left)
	}
}

func TestCheckRateLimitAsksForOneAndCountsNothing(t *testing.T) {
	conn := start(t, models, auth.Local, false)
	for _, more := range []string{``, `,"hitsAddend":100000`, `,"hitsAddend":7`} {
		if got := call(t, conn, "CheckRateLimit", of("user=ann", more)); !strings.Contains(got, `"overallCode":"OK"`) {
			t.Errorf("%s: %s", more, got)
		}
	}
	left(t, conn, "ann", 1000)
	call(t, conn, "Report", of("user=ann", `,"hitsAddend":999`))
	left(t, conn, "ann", 1)
	call(t, conn, "Report", of("user=ann", `,"hitsAddend":1`))
	left(t, conn, "ann", 0)
	if got := call(t, conn, "CheckRateLimit", of("user=mallory", ``)); !strings.Contains(got, `"overallCode":"OVER_LIMIT"`) {
		t.Errorf("a caller that is denied: %s", got)
	}
}

func TestReserveHoldsAndCommitCountsTheTrueCost(t *testing.T) {
	t.Run("before", func(t *testing.T) { checkReserves(t, models) })
	t.Run("after", func(t *testing.T) { checkReserves(t, strings.Replace(models, "1000/d}", "1000/d, charge: after}", 1)) })
}

func checkReserves(t *testing.T, file string) {
	t.Helper()
	conn := start(t, file, auth.Local, false)
	one, two := reserve(t, conn, "user=ann", `,"amount":400`), reserve(t, conn, "user=ann", `,"amount":4000,"ttl":"5s"`)
	left(t, conn, "ann", 100)
	if got := call(t, conn, "Reserve", of("user=ann", `,"amount":101`)); got != overLimit {
		t.Errorf("a hold beyond the limit: %s", got)
	}
	for _, step := range []struct {
		id       string
		actual   int
		released bool
		left     int
	}{{one, 30, true, 470}, {one, 30, false, 470}, {two, 700, true, 270}, {two, 1, false, 270}, {"", 20, false, 250}, {"unknown", 20, false, 230}} {
		want := `{}`
		if step.released {
			want = `{"reservationReleased":true}`
		}
		if got := call(t, conn, "Commit", of("user=ann", fmt.Sprintf(`,"reservationId":%q,"actualAmount":%d`, step.id, step.actual))); got != want {
			t.Errorf("commit of %d: got %s, want %s", step.actual, got, want)
		}
		left(t, conn, "ann", step.left)
	}
}

func TestAReserveOfNothingAsksForOneUnit(t *testing.T) {
	conn := start(t, models, auth.Local, false)
	id := reserve(t, conn, "user=ann", ``)
	left(t, conn, "ann", 1000)
	if got := call(t, conn, "Commit", of("user=ann", fmt.Sprintf(`,"reservationId":%q,"actualAmount":1500`, id))); got != `{"reservationReleased":true}` {
		t.Errorf("commit: %s", got)
	}
	if got := call(t, conn, "Reserve", of("user=ann", ``)); got != overLimit {
		t.Errorf("without a unit left: %s, want %s", got, overLimit)
	}
}

// The amount multiplies the costs of rules, as hits do; a rule that needs no engine decides at once.
func TestRulesDecideOnReserves(t *testing.T) {
	conn := start(t, models, auth.Local, false)
	reserve(t, conn, "user=ann,model=large", `,"amount":100`)
	for descriptors, want := range map[string]string{
		"user=ann":             `"limitRemaining":900,`,
		"user=ann,model=large": `"limitRemaining":900,`, // of 1000, and 99000 of 100000
	} {
		if got := call(t, conn, "CheckRateLimit", of(descriptors, ``)); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", descriptors, got, want)
		}
	}
	for _, free := range []string{"user=boss", "color=red"} {
		id := reserve(t, conn, free, `,"amount":100000`)
		if got := call(t, conn, "Commit", of(free, fmt.Sprintf(`,"reservationId":%q,"actualAmount":1`, id))); got != `{"reservationReleased":true}` {
			t.Errorf("%s: commit: %s", free, got)
		}
	}
	if got := call(t, conn, "Reserve", of("user=ann; user=mallory", `,"amount":1`)); got != overLimit {
		t.Errorf("a caller that is denied: %s", got)
	}
	left(t, conn, "ann", 900)
}

func TestCallsThatCannotBeDecidedSayWhy(t *testing.T) {
	conn := start(t, models, auth.Local, false)
	many := strings.TrimSuffix(strings.Repeat("user=ann; ", 129), "; ")
	for _, c := range []struct{ method, call, want string }{
		{"Reserve", `{}`, `InvalidArgument: rls: domain is empty`},
		{"Commit", `{"domain":"models"}`, `InvalidArgument: rls: descriptors are 0, want 1 to 1024`},
		{"Report", `{"domain":"models","descriptors":[{}]}`, `InvalidArgument: rls: descriptors[0]: entries are empty`},
		{"Reserve", of("user=ann", `,"amount":"18446744073709551615"`), `InvalidArgument: kuadrant: amount is 18446744073709551615, want at most 9007199254740992`},
		{"Commit", of("user=ann", `,"actualAmount":"9007199254740993"`), `InvalidArgument: kuadrant: actual_amount is 9007199254740993, want at most 9007199254740992`},
		{"Reserve", of("user=ann", `,"ttl":"0s"`), `InvalidArgument: kuadrant: ttl is 0s, want a duration above 0`},
		{"Reserve", of("user=ann", `,"ttl":"-1s"`), `InvalidArgument: kuadrant: ttl is -1s, want a duration above 0`},
		{"Reserve", strings.Replace(of("path=/queue", `,"amount":1`), "models", "queues", 1), `InvalidArgument: rls: rule is a leaky bucket, whose delay a reservation cannot tell`},
		{"Report", of(many, ``), `InvalidArgument: rls: requests are 129, not 1 to 128`},
		{"Report", `{"domain":"models","descriptors":[{"entries":[{"key":"user","value":"ann"}],"isNegativeHits":true}]}`, `InvalidArgument: rls: descriptors[0]: is_negative_hits gives hits back, which only ShouldRateLimit of Envoy's service does`},
	} {
		if got := call(t, conn, c.method, c.call); got != c.want {
			t.Errorf("%s %.200s:\ngot  %s\nwant %s", c.method, c.call, got, c.want)
		}
	}
	left(t, conn, "ann", 1000)
}

func TestCallersNeedTheScopesOfWhatTheyAsk(t *testing.T) {
	own := `{"domain":"models","descriptors":[{"entries":[{"key":"user","value":"ann"}],"limit":{"requestsPerUnit":10,"unit":"DAY"}}]}`
	methods := []string{"CheckRateLimit", "Report", "Reserve", "Commit"}
	for _, method := range methods {
		conn := start(t, models, auth.Metrics, false)
		if got := call(t, conn, method, of("user=ann", ``)); !strings.HasPrefix(got, "PermissionDenied: rls: this needs the scope take") {
			t.Errorf("%s without a scope: %s", method, got)
		}
		conn = start(t, models, auth.Take, false)
		if got := call(t, conn, method, of("user=ann", ``)); !strings.HasPrefix(got, "{") {
			t.Errorf("%s with the scope take: %s", method, got)
		}
		if got := call(t, conn, method, own); !strings.HasPrefix(got, "PermissionDenied: rls: this needs the scope dynamic") {
			t.Errorf("%s of a limit in the call: %s", method, got)
		}
		conn = start(t, models, auth.Local, false)
		if got := call(t, conn, method, own); !strings.HasPrefix(got, "{") {
			t.Errorf("%s of a limit in the call, with the scope dynamic: %s", method, got)
		}
	}
}

func TestOnlyEnvoysServiceDecidesByItsFiles(t *testing.T) {
	conn := start(t, models, auth.Local, true)
	for _, method := range []string{"CheckRateLimit", "Report", "Reserve", "Commit"} {
		if got := call(t, conn, method, of("user=ann", ``)); !strings.HasPrefix(got, "FailedPrecondition: rls: with --compat envoyproxy only Envoy's service decides") {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// raw sends and receives the bytes of messages.
type raw struct{}

func (raw) Name() string                  { return "proto" }
func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (raw) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = slices.Clone(b)
	return nil
}

// The bytes are those of limitador's definition of the service, written by hand, with a field that it may get one day.
func TestCallsHaveTheBytesOfLimitador(t *testing.T) {
	conn := start(t, models, auth.Local, false)
	invoke := func(method, in string) (out []byte) {
		t.Helper()
		if err := conn.Invoke(t.Context(), "/kuadrant.service.ratelimit.v1.RateLimitService/"+method, []byte(in), &out, grpc.ForceCodec(raw{})); err != nil {
			t.Fatalf("%s %q: %v", method, in, err)
		}
		return out
	}
	what := "\x0a\x06models" + "\x12\x0d" + "\x0a\x0b" + "\x0a\x04user" + "\x12\x03ann" // domain = 1, descriptors = 2: entries = 1: key = 1, value = 2
	held := invoke("Reserve", what+"\x18\x90\x03"+"\x22\x02\x08\x1e"+"\x7a\x01?")       // amount = 3: 400, ttl = 4: seconds = 1: 30
	id, found := strings.CutPrefix(string(held), "\x08\x01\x12")                        // code = 1: OK, reservation_id = 2
	if !found {
		t.Fatalf("Reserve answers %q", held)
	}
	if got := invoke("Commit", what+"\x1a"+id+"\x20\x1e"); string(got) != "\x08\x01" { // reservation_id = 3, actual_amount = 4: 30; reservation_released = 1
		t.Errorf("Commit answers %q", got)
	}
	left(t, conn, "ann", 970)
	if got := invoke("Report", what+"\x18\xca\x07"); string(got) != "\x08\x01" { // hits_addend = 3: 970; overall_code = 1: OK
		t.Errorf("Report answers %q", got)
	}
	if got := invoke("Reserve", what); string(got) != "\x08\x02" { // OVER_LIMIT, and no id
		t.Errorf("Reserve beyond the limit answers %q", got)
	}
}

// A stranger's messages are not read, and large ones of callers are bounded.
func TestHostileCallsAreRefused(t *testing.T) {
	conn := start(t, models, auth.Local, false)
	huge := strings.Repeat("A", 2<<20)
	if got := call(t, conn, "Commit", of("user=ann", fmt.Sprintf(`,"reservationId":%q`, huge))); !strings.HasPrefix(got, "ResourceExhausted:") {
		t.Errorf("an id of 2 MiB: %.200s", got)
	}
	if got := call(t, conn, "Commit", of("user=ann", fmt.Sprintf(`,"reservationId":%q,"actualAmount":1`, huge[:1<<19]))); got != `{}` {
		t.Errorf("an id of 512 KiB: %.200s", got)
	}
	id := reserve(t, conn, "user="+huge[:1<<18], `,"amount":10`)
	if len(id) > 1<<10 {
		t.Errorf("an id has %d bytes, want at most 1 KiB", len(id))
	}
	if got := call(t, conn, "Commit", of("user="+huge[:1<<18], fmt.Sprintf(`,"reservationId":%q,"actualAmount":1`, id))); got != `{"reservationReleased":true}` {
		t.Errorf("a commit of a huge key: %.200s", got)
	}
	for _, name := range []string{"Reserve", "Commit", "Report", "CheckRateLimit"} {
		var out []byte
		err := conn.Invoke(t.Context(), "/kuadrant.service.ratelimit.v1.RateLimitService/"+name, []byte("\xff\xff\xff"), &out, grpc.ForceCodec(raw{}))
		if c := status.Code(err); c != codes.Internal && c != codes.InvalidArgument {
			t.Errorf("%s of no message: %v", name, err)
		}
	}
	left(t, conn, "ann", 999)
}
