package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	reflected "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirflow/weir/cmd/weir/internal/kuadrantpb"
	"github.com/weirflow/weir/internal/redistest"
)

// This file is one table: what the daemon promises about a cost and about a caller, by every way in. A way in that is in neither
// ways nor others fails TestEveryWayInIsInTheTable.

// waysRules charge a cost after the work, up to 5000 units of it.
const waysRules = `rules:
  - {name: told, match: {domain: m, descriptor.user: "*"}, key: descriptor.user, limit: fixed window 1000/366d, charge: {when: after, most: 5000}}
  - {name: quota, limit: quota 10/day}
`

// way is a way in.
type way struct {
	// tell tells a cost after the work of a key of the rule told; nil if the way has no such costs.
	tell func(d *waysDaemon, key string, cost int64) error
	// before prepares to tell, as a reservation does; nil for nothing. It returns what to tell with.
	before func(d *waysDaemon, key string) (tell func(cost int64) error, err error)
	// ask asks for a key of the rule told until the context ends; nil if the caller cannot leave before the answer.
	ask func(ctx context.Context, d *waysDaemon, key string) error
	// takes takes a unit of a key of the rule told, where ask does not; nil if the way takes nothing.
	takes func(d *waysDaemon, key string) error
	// stays says that a decision is made though its caller has left.
	stays bool
	// negative asks for a cost of -1, and returns the answer; nil if the way has no negative costs.
	negative func(d *waysDaemon) string
}

// others are the ways in without costs: they ask for one, give back, or are about something else.
var others = strings.Fields(`/v1/return /v1/reset /v1/renew /v1/token /v1/stats /openapi.json /healthz /readyz
	WEIR.RETURN WEIR.RESET DEL PING ECHO HELLO AUTH SELECT CLIENT COMMAND INFO CONFIG QUIT`)

var ways = map[string]way{
	"/v1/take":    httpWay("/v1/take", nil),
	"/v1/peek":    httpWay("/v1/peek", nil),
	"/v1/wait":    {negative: httpNegative("/v1/wait"), takes: httpWay("/v1/wait", nil).take},
	"/v1/reserve": httpWay("/v1/reserve", nil),
	"/v1/record": {tell: func(d *waysDaemon, key string, cost int64) error {
		return d.post(context.Background(), "/v1/record", fmt.Sprintf(`{"rule":"told","key":%q,"cost":%d}`, key, cost))
	}, negative: httpNegative("/v1/record")},
	"/v1/settle": {before: func(d *waysDaemon, key string) (func(int64) error, error) {
		token, err := d.token("/v1/reserve", fmt.Sprintf(`{"rule":"told","key":%q,"cost":100}`, key))
		return func(cost int64) error {
			return d.post(context.Background(), "/v1/settle", fmt.Sprintf(`{"token":%q,"cost":%d}`, token, cost))
		}, err
	}, negative: func(d *waysDaemon) string {
		token, _ := d.token("/v1/reserve", `{"rule":"quota","key":"n"}`)
		return fmt.Sprint(d.post(context.Background(), "/v1/settle", fmt.Sprintf(`{"token":%q,"cost":-1}`, token)))
	}},
	"/v1/check": {stays: true, ask: func(ctx context.Context, d *waysDaemon, key string) error {
		return d.post(ctx, "/v1/check?rule=told&key="+key, "")
	}, negative: func(d *waysDaemon) string {
		return fmt.Sprint(d.post(context.Background(), "/v1/check?rule=quota&key=n&cost=-1", ""))
	}},
	"/json": {tell: func(d *waysDaemon, key string, cost int64) error {
		return d.post(context.Background(), "/json", descriptorJSON(key, cost))
	}, ask: func(ctx context.Context, d *waysDaemon, key string) error {
		return d.post(ctx, "/json", descriptorJSON(key, 1))
	}},
	"WEIR.TAKE": {negative: respNegative("WEIR.TAKE quota n -1"), takes: respTake("WEIR.TAKE")},
	"WEIR.PEEK": {negative: respNegative("WEIR.PEEK quota n -1")},
	"WEIR.WAIT": {negative: respNegative("WEIR.WAIT 10 quota n -1"), takes: respTake("WEIR.WAIT 10")},
	"WEIR.RECORD": {tell: func(d *waysDaemon, key string, cost int64) error {
		return d.command(fmt.Sprintf("WEIR.RECORD told %s %d", key, cost))
	}, negative: respNegative("WEIR.RECORD quota n -1")},
	"WEIR.RESERVE": {negative: respNegative("WEIR.RESERVE 0 quota n -1"), takes: respTake("WEIR.RESERVE 0")},
	"WEIR.SETTLE": {before: func(d *waysDaemon, key string) (func(int64) error, error) {
		token, err := d.token("/v1/reserve", fmt.Sprintf(`{"rule":"told","key":%q,"cost":100}`, key))
		return func(cost int64) error { return d.command(fmt.Sprintf("WEIR.SETTLE %s %d", token, cost)) }, err
	}, negative: respNegative("WEIR.SETTLE token -1")},
	"CL.THROTTLE": {}, // it brings a limit of its own, and a negative quantity gives back, as in redis-cell
	"envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit": {tell: func(d *waysDaemon, key string, cost int64) error {
		_, err := d.envoy.ShouldRateLimit(context.Background(), &ratelimit.RateLimitRequest{Domain: "m", Descriptors: descriptorsWith(key, cost)})
		return err
	}, ask: func(ctx context.Context, d *waysDaemon, key string) error {
		_, err := d.envoy.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: "m", Descriptors: descriptorsWith(key, 1)})
		return err
	}},
	"kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit": {ask: func(ctx context.Context, d *waysDaemon, key string) error {
		_, err := d.kuadrant.CheckRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: "m", Descriptors: descriptorsOf(key)})
		return err
	}},
	"kuadrant.service.ratelimit.v1.RateLimitService/Report": {tell: func(d *waysDaemon, key string, cost int64) error {
		_, err := d.kuadrant.Report(context.Background(), &ratelimit.RateLimitRequest{Domain: "m", Descriptors: descriptorsWith(key, cost)})
		return err
	}},
	"kuadrant.service.ratelimit.v1.RateLimitService/Reserve": {ask: func(ctx context.Context, d *waysDaemon, key string) error {
		_, err := d.kuadrant.Reserve(ctx, &kuadrantpb.ReserveRequest{Domain: "m", Descriptors: descriptorsOf(key), Amount: 5})
		return err
	}},
	"kuadrant.service.ratelimit.v1.RateLimitService/Commit": {before: func(d *waysDaemon, key string) (func(int64) error, error) {
		held, err := d.kuadrant.Reserve(context.Background(), &kuadrantpb.ReserveRequest{Domain: "m", Descriptors: descriptorsOf(key)})
		return func(cost int64) error {
			_, err := d.kuadrant.Commit(context.Background(), &kuadrantpb.CommitRequest{Domain: "m", Descriptors: descriptorsOf(key), ReservationId: held.GetReservationId(), ActualAmount: uint64(cost)})
			return err
		}, err
	}},
}

func descriptorsWith(user string, hits int64) []*envoy.RateLimitDescriptor {
	all := descriptorsOf(user)
	all[0].HitsAddend = wrapperspb.UInt64(uint64(hits))
	return all
}

func descriptorJSON(user string, hits int64) string {
	return fmt.Sprintf(`{"domain":"m","descriptors":[{"entries":[{"key":"user","value":%q}],"hitsAddend":"%d"}]}`, user, hits)
}

// httpWay is a path that asks for rule and key.
func httpWay(path string, tell func(*waysDaemon, string, int64) error) way {
	return way{tell: tell, ask: func(ctx context.Context, d *waysDaemon, key string) error {
		return d.post(ctx, path, fmt.Sprintf(`{"rule":"told","key":%q}`, key))
	}, negative: httpNegative(path)}
}

func httpNegative(path string) func(*waysDaemon) string {
	return func(d *waysDaemon) string {
		return fmt.Sprint(d.post(context.Background(), path, `{"rule":"quota","key":"n","cost":-1}`))
	}
}

func respTake(command string) func(*waysDaemon, string) error {
	return func(d *waysDaemon, key string) error { return d.command(command + " told " + key) }
}

// take takes a unit of a key of the rule told.
func (w way) take(d *waysDaemon, key string) error {
	if w.takes != nil {
		return w.takes(d, key)
	}
	return w.ask(context.Background(), d, key)
}

func respNegative(command string) func(*waysDaemon) string {
	return func(d *waysDaemon) string { return fmt.Sprint(d.command(command)) }
}

// waysDaemon is a daemon with all its ports.
type waysDaemon struct {
	t                  *testing.T
	url, metrics, resp string
	log                func() string // ends the daemon
	conn               *grpc.ClientConn
	envoy              ratelimit.RateLimitServiceClient
	kuadrant           kuadrantpb.RateLimitServiceClient
}

func startWays(t *testing.T, args ...string) *waysDaemon {
	t.Helper()
	folder := t.TempDir()
	file, socket := filepath.Join(folder, "weir.yaml"), filepath.Join(folder, "grpc")
	if err := os.WriteFile(file, []byte(waysRules), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &waysDaemon{t: t, resp: loopback(t)}
	metrics := loopback(t)
	d.metrics = "http://" + metrics + "/metrics"
	d.url, d.log = startLoggedDaemon(t, append([]string{"--config", file, "--http", "127.0.0.1:0", "--grpc", "unix:" + socket, "--resp", d.resp, "--metrics", metrics, "--log-level", "debug"}, args...)...)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	d.conn, d.envoy, d.kuadrant = conn, ratelimit.NewRateLimitServiceClient(conn), kuadrantpb.NewRateLimitServiceClient(conn)
	return d
}

// post returns an error with the answer unless that has status 200 or 204.
func (d *waysDaemon) post(ctx context.Context, path, body string) error {
	_, err := d.answer(ctx, path, body)
	return err
}

func (d *waysDaemon) answer(ctx context.Context, path, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%d %s", answer.StatusCode, text)
	}
	return text, err
}

// token returns the token of a reservation.
func (d *waysDaemon) token(path, body string) (string, error) {
	text, err := d.answer(context.Background(), path, body)
	var answer struct{ Token string }
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer.Token, err
}

// command returns an error with the answer to a Redis command, if that is one.
func (d *waysDaemon) command(command string) error {
	lines, err := d.lines(command)
	if err == nil && strings.HasPrefix(lines[0], "-") {
		err = fmt.Errorf("%s", lines[0])
	}
	return err
}

// lines returns the lines of the answer to a command.
func (d *waysDaemon) lines(command string) (lines []string, err error) {
	conn, err := net.Dial("tcp", d.resp)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err = io.WriteString(conn, command+"\r\nECHO the-end\r\n"); err != nil {
		return nil, err
	}
	for in := bufio.NewScanner(conn); in.Scan(); {
		if strings.HasPrefix(in.Text(), "the-end") {
			return lines, nil
		}
		lines = append(lines, in.Text())
	}
	return lines, io.ErrUnexpectedEOF
}

// value returns the sum of the values of a metric whose lines match.
func (d *waysDaemon) value(line string) (sum float64) {
	d.t.Helper()
	for _, found := range regexp.MustCompile(`(?m)^`+line+` (\S+)$`).FindAllStringSubmatch(fetchText(d.t, http.DefaultClient, d.metrics), -1) {
		n, _ := strconv.ParseFloat(found[1], 64)
		sum += n
	}
	return sum
}

func (d *waysDaemon) told(outcome string) int64 {
	return int64(d.value(`weir_told_units_total\{outcome="` + outcome + `",rule="told"\}`))
}

// remaining returns the units that a key has left after some came back.
func (d *waysDaemon) remaining(key string, back int64) (left int64) {
	d.t.Helper()
	text, err := d.answer(context.Background(), "/v1/return", fmt.Sprintf(`{"rule":"told","key":%q,"cost":%d}`, key, back))
	var answer struct{ Remaining int64 }
	if err = errors.Join(err, json.Unmarshal(text, &answer)); err != nil {
		d.t.Fatal(err)
	}
	return answer.Remaining
}

// telling returns the ways that tell costs, ready to tell.
func (d *waysDaemon) telling(prefix string) map[string]func(cost int64) error {
	d.t.Helper()
	all := map[string]func(int64) error{}
	for name, w := range ways {
		key := prefix + name
		switch {
		case w.before != nil:
			tell, err := w.before(d, key)
			if err != nil {
				d.t.Fatalf("%s: %v", name, err)
			}
			all[name] = tell
		case w.tell != nil:
			all[name] = func(cost int64) error { return w.tell(d, key, cost) }
		}
	}
	return all
}

// One cost told after the work counts at most its bound, and the rest is in the log and in the metrics.
func TestACostToldAfterTheWorkIsBoundedOnEveryWay(t *testing.T) {
	d := startWays(t)
	for name, tell := range d.telling("bound-") {
		counted, capped := d.told("counted"), d.told("capped")
		if err := tell(1_000_000); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if counted, capped = d.told("counted")-counted, d.told("capped")-capped; counted != 5000 || capped != 995_000 {
			t.Errorf("%s: %d units are counted and %d capped, want 5000 and 995000", name, counted, capped)
		}
		if left := d.remaining("bound-"+name, 4500); left != 500 {
			t.Errorf("%s: with 4500 units back %d are left, want 500: the cost counts as 5000", name, left)
		}
	}
	if log := d.log(); !strings.Contains(log, "counts only up to its bound") || !strings.Contains(log, "cost=1000000 most=5000") {
		t.Errorf("the log has no line of the bound: %s", log)
	}
}

// A cost told while Redis is away counts when it is back.
func TestACostToldInAnOutageIsKeptOnEveryWay(t *testing.T) {
	server := redistest.Start(t)
	d := startWays(t, "--engine", "redis://"+server.Addr, "--deadline", "300ms")
	telling := d.telling("outage-")
	server.Stop()
	for name, tell := range telling {
		if err := tell(700); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Cont()
	for end := time.Now().Add(30 * time.Second); d.post(context.Background(), "/v1/peek", `{"rule":"told","key":"back"}`) != nil && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	for name := range telling {
		left := d.remaining("outage-"+name, 0)
		for end := time.Now().Add(30 * time.Second); left != 300 && time.Now().Before(end); left = d.remaining("outage-"+name, 0) {
			time.Sleep(50 * time.Millisecond)
		}
		if left != 300 {
			t.Errorf("%s: %d units are left after the outage, want 300: the cost of 700 counts once", name, left)
		}
	}
	if lost := d.told("lost"); lost != 0 {
		t.Errorf("%d units are lost", lost)
	}
}

// A caller that leaves, or whose own deadline ends, is no failure of the engine.
func TestACallerThatLeavesIsNoErrorOnAnyWay(t *testing.T) {
	t.Setenv(leavesVariable, "leaves")
	d := startWays(t)
	const left, failed = `weir_decisions_total\{.*result="left",rule="told"\}`, `weir_decisions_total\{.*result="(?:away|error)".*\}`
	for name, w := range ways {
		if w.ask == nil {
			continue
		}
		before := d.value(left)
		want := before + 1
		if w.stays || name == "/v1/peek" || strings.HasSuffix(name, "/CheckRateLimit") {
			want = before // a peek is no decision
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := w.ask(ctx, d, "leaves")
		if cancel(); err == nil {
			t.Errorf("%s: the caller did not leave", name)
		}
		for end := time.Now().Add(20 * time.Second); d.value(left) < want && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		if now := d.value(left); now != want || d.value(failed) != 0 {
			t.Errorf("%s: %v more decisions left and %v failed, want %v and 0", name, now-before, d.value(failed), want-before)
		}
	}
	if log := d.log(); strings.Contains(log, "level=WARN") || !strings.Contains(log, "a caller left, or its deadline ended, before the decision") {
		t.Errorf("the log has a warning, or no line of a caller that left: %s", log)
	}
}

// A negative cost is refused as that.
func TestANegativeCostIsRefusedAsThatOnEveryWay(t *testing.T) {
	d := startWays(t)
	for name, w := range ways {
		if w.negative == nil {
			continue
		}
		if got := w.negative(d); !strings.Contains(got, "cost") || !strings.Contains(got, "-1") {
			t.Errorf("%s: got %s, want an error of the cost", name, got)
		}
	}
}

// A new path, command or method has to join the table.
func TestEveryWayInIsInTheTable(t *testing.T) {
	d := startWays(t)
	known := slices.Concat(slices.Collect(maps.Keys(ways)), others)
	found := append(d.paths(), d.commands()...)
	for _, name := range append(found, d.methods()...) {
		if !slices.Contains(known, name) {
			t.Errorf("%s is not in the table of ways in: add it to ways, or to others if it has no costs", name)
		}
	}
	for _, name := range known {
		if !slices.Contains(append(found, d.methods()...), name) && name != "/json" && name != "/openapi.json" {
			t.Errorf("%s is in the table, and no way in", name)
		}
	}
}

func (d *waysDaemon) paths() (paths []string) {
	d.t.Helper()
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal([]byte(fetchText(d.t, http.DefaultClient, d.url+"/openapi.json")), &document); err != nil || len(document.Paths) < 5 {
		d.t.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	return slices.Collect(maps.Keys(document.Paths))
}

func (d *waysDaemon) commands() (names []string) {
	d.t.Helper()
	lines, err := d.lines("COMMAND")
	if err != nil {
		d.t.Fatal(err)
	}
	for i, line := range lines {
		if line == "*6" {
			names = append(names, strings.ToUpper(lines[i+2]))
		}
	}
	return names
}

// methods returns the methods of the services on the gRPC port, without those of health and reflection.
func (d *waysDaemon) methods() (names []string) {
	d.t.Helper()
	stream, err := reflected.NewServerReflectionClient(d.conn).ServerReflectionInfo(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	_ = stream.Send(&reflected.ServerReflectionRequest{MessageRequest: &reflected.ServerReflectionRequest_ListServices{}})
	answer, err := stream.Recv()
	if err != nil {
		d.t.Fatal(err)
	}
	described := map[string][]grpc.MethodDesc{
		ratelimit.RateLimitService_ServiceDesc.ServiceName:  ratelimit.RateLimitService_ServiceDesc.Methods,
		kuadrantpb.RateLimitService_ServiceDesc.ServiceName: kuadrantpb.RateLimitService_ServiceDesc.Methods,
	}
	for _, s := range answer.GetListServicesResponse().GetService() {
		if strings.HasPrefix(s.Name, "grpc.") {
			continue
		}
		if described[s.Name] == nil {
			names = append(names, s.Name)
		}
		for _, m := range described[s.Name] {
			names = append(names, s.Name+"/"+m.MethodName)
		}
	}
	return names
}
