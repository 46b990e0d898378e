package rls

import (
	"context"
	"encoding/hex"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
)

// Envoy knows the units of the calendar but the quarter, with numbers of its own: WEEK is the last. At midnight on Thursday,
// 1 January 2026, of two hits one is left, until the next window.
func TestTheUnitOfAQuotaIsThatOfTheCalendarToTheByte(t *testing.T) {
	for unit, want := range map[string]string{
		"day":     "08011213" + "08011207" + "0802" + "1004" + "1a0171" + "1801" + "2204" + "0880a305",   // 86,400 s
		"week":    "08011213" + "08011207" + "0802" + "1007" + "1a0171" + "1801" + "2204" + "08808c15",   // 4 days, to Monday
		"month":   "08011214" + "08011207" + "0802" + "1005" + "1a0171" + "1801" + "2205" + "0880bda301", // 31 days
		"quarter": "08011212" + "08011205" + "0802" + "1a0171" + "1801" + "2205" + "0880ceda03",          // 90 days, without a unit
		"year":    "08011214" + "08011207" + "0802" + "1006" + "1a0171" + "1801" + "2205" + "0880e7840f", // 365 days
	} {
		s, _ := newServer(t, "rules: [{name: q, match: {domain: shop, descriptor.a: '*'}, limit: quota 2/"+unit+"}]", nil)
		answer, err := s.ShouldRateLimit(t.Context(), asked(t, callOf(entries("a=b"))))
		if err != nil {
			t.Fatal(err)
		}
		got, err := proto.MarshalOptions{Deterministic: true}.Marshal(answer)
		if err != nil || hex.EncodeToString(got) != want {
			t.Errorf("%s: the answer is %x and %v, want %s", unit, got, err, want)
		}
	}
}

func TestARefusalShowsTheLimitThatRefuses(t *testing.T) {
	s, now := newServer(t, "rules: [{name: q, match: {domain: shop, descriptor.a: '*'}, limit: [fixed window 2/m, quota 2/month in Europe/Paris]}]", nil)
	call := callOf(entries("a=b", `"hitsAddend":2`))
	for i, want := range []string{
		`{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":2,"unit":"MINUTE","name":"q"},"durationUntilReset":"60s"}]}`,
		`{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"requestsPerUnit":2,"unit":"MONTH","name":"q"},"durationUntilReset":"2674800s"}],"dynamicMetadata":{"rule":"q","key":"","retry_after":2674800}}`,
	} {
		answer, err := s.ShouldRateLimit(t.Context(), asked(t, call))
		if err != nil {
			t.Fatal(err)
		}
		answer.ResponseHeadersToAdd = nil
		if sameAs(t, answer, want); t.Failed() {
			t.Fatalf("call %d at %v", i, now)
		}
	}
}

// overridden is an engine that gives every key another limit.
type overridden struct {
	weir.Engine
	instead *weir.Rule
}

func (o overridden) Requests(requests []weir.Request) (all []weir.Request) {
	for _, q := range requests {
		all = append(all, o.instead.For(q.Key, q.Cost))
	}
	return all
}

func TestAnAnswerShowsTheLimitOfAnOverride(t *testing.T) {
	instead, err := weir.ParseRule("q=quota 7/year")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newServer(t, "rules: [{name: q, match: {domain: shop, descriptor.a: '*'}, limit: fixed window 2/m}]", func(o *setup) {
		below := o.desk.Engine
		o.desk.Engine = overridden{weir.Wrap(below, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
			call.Requests = overridden{instead: instead}.Requests(call.Requests)
			return next(ctx, call)
		}), instead}
	})
	answer, err := s.ShouldRateLimit(t.Context(), asked(t, callOf(entries("a=b"))))
	if err != nil {
		t.Fatal(err)
	}
	sameAs(t, answer, `{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":7,"unit":"YEAR","name":"q"},"limitRemaining":6,"durationUntilReset":"31536000s"}]}`)
}
