package httplimit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

// Each row is a mistake that New refuses, and a part of the error.
func TestNewSaysWhatIsWrongWithItsOptions(t *testing.T) {
	rule := mustRule(t, "a=1/s")
	plan := func(*http.Request) *weir.Rule { return rule }
	one := []httplimit.Rule{{Limit: "1/s"}}
	tests := []struct {
		options httplimit.Options
		want    string
	}{
		{httplimit.Options{}, "rules are 0, not 1 to 16"},
		{httplimit.Options{Rules: []httplimit.Rule{{}}}, "rules[0] has not exactly one of Limit, Rule and Plan"},
		{httplimit.Options{Rules: []httplimit.Rule{{Limit: "1/s", Rule: rule}}}, "rules[0] has not exactly one of"},
		{httplimit.Options{Rules: []httplimit.Rule{{Rule: rule, Plan: plan}}}, "rules[0] has not exactly one of"},
		{httplimit.Options{Rules: []httplimit.Rule{{Limit: "1/fortnight"}}}, `unexpected "1/fortnight"`},
		{httplimit.Options{Rules: []httplimit.Rule{{Limit: "0/s"}}}, "token bucket 0/s"},
		{httplimit.Options{Rules: []httplimit.Rule{{Limit: "1/s"}, {Limit: "2/s"}}}, `rules[1] has the name "client" of an earlier rule`},
		{httplimit.Options{Rules: []httplimit.Rule{{Limit: "leaky bucket 1/s queue 9"}, {Rule: rule}}}, "rules[0].limit leaky bucket 1/s queue 9 cannot be decided together"},
		{httplimit.Options{Rules: []httplimit.Rule{{Limit: "leaky bucket 1/s queue 11"}}}, "holds requests for up to 11s, above MaxWait of 10s"},
		{httplimit.Options{Rules: []httplimit.Rule{{Limit: "1/s", Missing: 7}}}, "rules[0].missing 7 is no policy"},
		{httplimit.Options{Rules: one, Wait: -1}, "wait -1ns is negative"},
		{httplimit.Options{Rules: one, MaxWait: -1}, "maxWait -1ns is negative"},
		{httplimit.Options{Rules: one, Guard: layer.GuardOptions{Deadline: -1}}, "deadline -1ns is negative"},
		{httplimit.Options{Rules: one, Headers: 9}, "headers 9 is no format"},
		{httplimit.Options{Rules: one, Guard: layer.GuardOptions{OnFailure: 9}}, "onFailure 9 is no policy"},
		{httplimit.Options{Rules: one, CORS: httplimit.CORS{Origins: []string{"*"}, Credentials: true}}, "which browsers refuse together"},
		{httplimit.Options{Rules: []httplimit.Rule{{Rule: &weir.Rule{}}}}, "was not made by NewRule"},
	}
	for _, tt := range tests {
		limited, err := httplimit.New(tt.options)
		if err == nil || limited != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%+v) = %v, want an error with %q", tt.options, err, tt.want)
		}
	}
	if _, err := httplimit.PerKey("1/s", nil); err == nil {
		t.Error("PerKey takes a nil key, want an error")
	}
	if _, err := httplimit.PerClient("sixty"); err == nil {
		t.Error("PerClient reads sixty, want an error")
	}
}
