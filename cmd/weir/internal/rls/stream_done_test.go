package rls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

const tokens = `
rules:
  - {name: tokens, match: {descriptor.user: "*"}, key: descriptor.user, limit: fixed window 100/d, charge: after}
  - {name: cents, match: {descriptor.team: "*"}, key: descriptor.team, limit: fixed window 1000/d, charge: {when: after, most: 500}, cost: 3}
  - {name: requests, match: {descriptor.path: "*"}, key: descriptor.path, limit: fixed window 2/d}
  - {name: tried, match: {descriptor.trial: "*"}, limit: fixed window 10/d, charge: after, shadow: true}
  - {name: replaced, match: {descriptor.plan: "*"}, limit: fixed window 100/d, charge: after, candidate: fixed window 10/d}
`

// A cost told after the work is counted whatever is left, and leaves a debt. What is asked before stays all or nothing.
func TestACostToldAfterTheWorkIsCountedWhateverIsLeft(t *testing.T) {
	user := "user=alice"
	for _, c := range []struct {
		name  string
		steps [][2]string // a call and its summary
	}{
		{"no hits ask for one", [][2]string{
			{callOf(entries(user, `"hitsAddend":0`)), "OK OK:100"},
			{callOf(entries(user, `"hitsAddend":100`)), "OK OK:0"},
			{callOf(entries(user, `"hitsAddend":0`)), "OVER_LIMIT OVER_LIMIT:0"},
		}},
		{"one hit is taken or refused", [][2]string{
			{callOf(entries(user, `"hitsAddend":99`)), "OK OK:1"},
			{callOf(entries(user)), "OK OK:0"},
			{callOf(entries(user)), "OVER_LIMIT OVER_LIMIT:0"},
			{callOf(entries(user, `"hitsAddend":1`)), "OVER_LIMIT OVER_LIMIT:0"},
			{callOf(entries(user, `"hitsAddend":1`, `"isNegativeHits":true`)), "OK OK:1"},
		}},
		{"more leave a debt", [][2]string{
			{callOf(entries(user, `"hitsAddend":60`)), "OK OK:40"},
			{callOf(entries(user, `"hitsAddend":250`)), "OK OK:0"},
			{callOf(entries(user, `"hitsAddend":210`, `"isNegativeHits":true`)), "OK OK:0"},
			{callOf(entries(user, `"hitsAddend":30`, `"isNegativeHits":true`)), "OK OK:30"},
		}},
		{"hits of the call", [][2]string{
			{`{"domain":"shop","hitsAddend":70,"descriptors":[` + entries(user) + `]}`, "OK OK:30"},
			{`{"domain":"shop","hitsAddend":70,"descriptors":[` + entries(user, `"hitsAddend":0`) + `]}`, "OK OK:30"},
			{`{"domain":"shop","hitsAddend":70,"descriptors":[` + entries(user) + `]}`, "OK OK:0"},
		}},
		{"others are refused", [][2]string{
			{callOf(entries("path=/"), entries("path=/")), "OK OK:0 OK:0"},
			{callOf(entries("path=/"), entries(user, `"hitsAddend":30`)), "OVER_LIMIT OVER_LIMIT:0 OK:70"},
			{callOf(entries("path=/", `"hitsAddend":0`), entries(user, `"hitsAddend":30`)), "OVER_LIMIT OVER_LIMIT:0 OK:40"},
			{callOf(entries(user)), "OK OK:39"},
		}},
		{"one descriptor of both kinds", [][2]string{
			{callOf(entries("user=alice,path=/a", `"hitsAddend":2`)), "OK OK:0"},
			{callOf(entries("user=alice,path=/a", `"hitsAddend":20`)), "OVER_LIMIT OVER_LIMIT:0"},
			{callOf(entries(user, `"hitsAddend":0`)), "OK OK:78"},
		}},
		{"one cost counts at most ten times the capacity", [][2]string{
			{callOf(entries(user, `"hitsAddend":1000000`)), "OK OK:0"},
			{callOf(entries(user, `"hitsAddend":901`, `"isNegativeHits":true`)), "OK OK:1"},
		}},
		{"a bound and a price of the rule", [][2]string{
			{callOf(entries("team=a", `"hitsAddend":100`)), "OK OK:700"},
			{callOf(entries("team=a", `"hitsAddend":200`)), "OK OK:200"}, // 500 of 600
			{callOf(entries("team=a")), "OK OK:197"},
		}},
		{"the largest cost", [][2]string{
			{callOf(entries("team=a", `"hitsAddend":"9007199254740992"`)), "OK OK:500"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newServer(t, tokens, nil)
			for _, step := range c.steps {
				if got := summary(t, s, step[0]); got != step[1] {
					t.Errorf("%s: got %s, want %s", step[0], got, step[1])
				}
			}
		})
	}
}

// The bytes are those that Envoy sends when a stream begins and when it has ended, written by hand.
func TestACostAfterTheWorkHasTheBytesOfEnvoy(t *testing.T) {
	conn, _, _, _ := startPort(t, time.Second, func(o *setup) { o.desk.Config = parsed(t, tokens) })
	call := func(hits string) string {
		descriptor := "\x0a\x0d" + "\x0a\x04user" + "\x12\x05alice" + hits // entries = 1: key = 1, value = 2
		return "\x0a\x04shop" + "\x12" + string(rune(len(descriptor))) + descriptor
	}
	status := func(code, left, reset string) string { // code = 1, current_limit = 2, limit_remaining = 3, duration_until_reset = 4
		status := code + "\x12\x0c" + "\x08\x64\x10\x04" + "\x1a\x06tokens" + left + reset
		return code + "\x12" + string(rune(len(status))) + status // overall_code = 1, statuses = 2
	}
	const ok, over, day = "\x08\x01", "\x08\x02", "\x22\x04\x08\x80\xa3\x05"
	for _, c := range []struct{ name, call, want string }{
		{"a stream begins", call("\x1a\x00"), status(ok, "\x18\x64", "\x22\x00")}, // hits_addend = 3: a wrapper of 0
		{"it has ended", call("\x1a\x03\x08\xac\x02"), status(ok, "", day)},       // a wrapper of 300
		{"the next begins", call("\x1a\x00"), status(over, "", day)},
		{"one without hits", call(""), status(over, "", day)},
	} {
		var got []byte
		err := conn.Invoke(t.Context(), "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", []byte(c.call), &got, grpc.ForceCodec(raw{}))
		if rest, found := strings.CutPrefix(string(got), c.want); err != nil || !found || c.want[1] == ok[1] && rest != "" { // a refusal has more
			t.Errorf("%s: got  %q, %v\nwant %q", c.name, got, err, c.want)
		}
	}
}

func parsed(t testing.TB, file string) *rules.Config {
	t.Helper()
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// What is not counted of a told cost is in a metric, and the call is answered.
func TestTheUnitsOfToldCostsAreAccountedFor(t *testing.T) {
	var got []string
	fails := false
	s, _ := newServer(t, tokens, func(o *setup) {
		o.desk.Told = func(rule string, units int64, what decide.Told) {
			got = append(got, fmt.Sprint(rule, " ", units, " ", what))
		}
		o.desk.Engine = weir.Wrap(o.desk.Engine, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
			if fails {
				return weir.Answer{}, errors.New("the engine is away")
			}
			return next(ctx, call)
		})
	})
	summary(t, s, callOf(entries("user=alice", `"hitsAddend":30`), entries("user=bob"), entries("user=carol", `"hitsAddend":0`)))
	summary(t, s, callOf(entries("user=alice", `"hitsAddend":1234`)))
	fails = true
	if answer := summary(t, s, callOf(entries("user=alice", `"hitsAddend":7`))); answer != "OK OK:0" {
		t.Errorf("a lost cost is answered %s", answer)
	}
	if want := []string{"tokens 30 counted", "tokens 234 capped", "tokens 1000 counted", "tokens 7 lost"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A cost is counted by whoever may record it, and by nobody else.
func TestAToldCostNeedsTheScopeOfItsRule(t *testing.T) {
	s, _ := newServer(t, tokens, func(o *setup) { o.Auth = &auth.Port{Open: auth.Anyone("test", auth.Metrics)} })
	_, err := s.ShouldRateLimit(t.Context(), asked(t, callOf(entries("user=alice", `"hitsAddend":30`))))
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "take:tokens") {
		t.Errorf("got %v, want a refusal that names the rule", err)
	}
}

// Shadows and candidates count what they are told, so that they show what they would refuse.
func TestShadowsAndCandidatesCountToldCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var compared []string
		s, _ := newServer(t, tokens, func(o *setup) {
			o.desk.Compared = func(name string, inForce, beside weir.Decision, err error) {
				compared = append(compared, fmt.Sprint(name, " ", inForce.Allowed, " ", beside.Allowed, " ", err))
			}
		})
		for _, descriptor := range []string{"trial=a", "plan=a"} {
			for _, hits := range []string{`"hitsAddend":50`, `"hitsAddend":1`} {
				if got := summary(t, s, callOf(entries(descriptor, hits))); !strings.HasPrefix(got, "OK") {
					t.Errorf("%s %s: got %s", descriptor, hits, got)
				}
				synctest.Wait()
			}
		}
		want := []string{"tried true true <nil>", "tried true false <nil>", "replaced~candidate true true <nil>", "replaced~candidate true false <nil>"}
		if !slices.Equal(compared, want) {
			t.Errorf("got %q, want %q", compared, want)
		}
	})
}
