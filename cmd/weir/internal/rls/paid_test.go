package rls

import (
	"fmt"
	"testing"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

const pooledShop = `
rules:
  - {name: floor, match: {descriptor.tenant: "*"}, key: descriptor.tenant, limit: fixed window 2/h, otherwise: pool}
  - {name: pool, match: otherwise, limit: fixed window 3/h}
  - {name: path, match: {descriptor.path: "*"}, key: descriptor.path, limit: fixed window 9/h}
  - {name: few, match: {descriptor.few: "*"}, limit: fixed window 1/h}
`

// Each descriptor shows the rule that paid for it, with what is left afterwards.
func TestAStatusIsThatOfTheRuleThatPaid(t *testing.T) {
	s, _ := newServer(t, pooledShop, nil)
	for i, c := range []struct{ descriptors, want string }{
		{`{"entries":[{"key":"tenant","value":"a"}],"hitsAddend":"2"}`, "OK floor 0"},
		{`{"entries":[{"key":"tenant","value":"a"}],"hitsAddend":"0"}`, "OK pool 3"}, // asks, and takes nothing
		{`{"entries":[{"key":"tenant","value":"a"}]}`, "OK pool 2"},
		{`{"entries":[{"key":"tenant","value":"a"}]},{"entries":[{"key":"path","value":"/x"}]}`, "OK pool 1, path 8"},
		{`{"entries":[{"key":"tenant","value":"b"}]},{"entries":[{"key":"tenant","value":"a"}]}`, "OK floor 1, pool 0"},
		{`{"entries":[{"key":"tenant","value":"b"}]},{"entries":[{"key":"path","value":"/x"}]}`, "OK floor 0, path 7"}, // and not what the next one would get
		{`{"entries":[{"key":"tenant","value":"b"}]},{"entries":[{"key":"path","value":"/x"}]}`, "OVER_LIMIT floor 0 over, path 7"},
		{`{"entries":[{"key":"tenant","value":"a"}],"isNegativeHits":true},{"entries":[{"key":"path","value":"/x"}]}`, "OK floor 1, path 6"}, // to the floor
		{`{"entries":[{"key":"few","value":"f"}]}`, "OK few 0"},
		{`{"entries":[{"key":"tenant","value":"c"}]},{"entries":[{"key":"few","value":"f"}]}`, "OVER_LIMIT floor 2, few 0 over"},
	} {
		a, err := s.ShouldRateLimit(t.Context(), asked(t, `{"domain":"shop","descriptors":[`+c.descriptors+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		got := a.OverallCode.String()
		for j, status := range a.Statuses {
			if j > 0 {
				got += ","
			}
			got += fmt.Sprintf(" %s %d", status.CurrentLimit.GetName(), status.LimitRemaining)
			if status.Code == service.RateLimitResponse_OVER_LIMIT {
				got += " over"
			}
		}
		if got != c.want {
			t.Errorf("call %d: got %s, want %s", i, got, c.want)
		}
	}
}

// Two descriptors for which one pool would have to pay share what it has left.
func TestTwoDescriptorsShareAPoolOfOneCall(t *testing.T) {
	s, _ := newServer(t, pooledShop, nil)
	for _, hits := range []string{"2", "1"} {
		for _, tenants := range []string{"a", "b"} {
			if hits == "2" {
				_, _ = s.ShouldRateLimit(t.Context(), asked(t, `{"domain":"shop","descriptors":[{"entries":[{"key":"tenant","value":"`+tenants+`"}],"hitsAddend":"2"}]}`))
			}
		}
	}
	both := `{"domain":"shop","descriptors":[{"entries":[{"key":"tenant","value":"a"}],"hitsAddend":"%d"},{"entries":[{"key":"tenant","value":"b"}],"hitsAddend":"%d"}]}`
	for _, c := range []struct {
		a, b int
		want service.RateLimitResponse_Code
	}{{2, 2, service.RateLimitResponse_OVER_LIMIT}, {2, 1, service.RateLimitResponse_OK}, {1, 1, service.RateLimitResponse_OVER_LIMIT}} {
		a, err := s.ShouldRateLimit(t.Context(), asked(t, fmt.Sprintf(both, c.a, c.b)))
		if err != nil || a.OverallCode != c.want {
			t.Errorf("%d and %d: got %v, %v, want %v", c.a, c.b, a, err, c.want)
		}
	}
}

// Two descriptors refuse each other by one rule, while another rule of both has less left.
func TestACallThatIsRefusedSaysSo(t *testing.T) {
	s, _ := newServer(t, `
rules:
  - {name: units, match: {descriptor.k: "*"}, limit: fixed window 5/h, cost: 2}
  - {name: calls, match: {descriptor.k: "*"}, limit: fixed window 3/h}
`, nil)
	const one = `{"entries":[{"key":"k","value":"v"}]}`
	for i, want := range []service.RateLimitResponse_Code{service.RateLimitResponse_OK, service.RateLimitResponse_OVER_LIMIT} {
		descriptors := one
		if i > 0 {
			descriptors += "," + one
		}
		a, err := s.ShouldRateLimit(t.Context(), asked(t, `{"domain":"shop","descriptors":[`+descriptors+`]}`))
		if err != nil || a.OverallCode != want {
			t.Errorf("call %d: got %v, %v, want %v", i, a, err, want)
		}
	}
}
