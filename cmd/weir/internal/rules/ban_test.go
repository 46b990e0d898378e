package rules

import (
	"strings"
	"testing"
)

func TestABanInAFileIsRefusedWhereItCannotBe(t *testing.T) {
	for limit, want := range map[string]string{
		"limit: 5/m and ban 1m up to 24h after 5/10m":                "",
		"limit: [ban 1m after 5/10m, 5/m, 100/h]":                    "",
		"limit: ban 1m after 5/10m":                                  "a ban alone",
		"limit: [5/m, ban 1m after 5/10m, ban 1h after 9/h]":         "at most one",
		"charge: after, limit: 5/m and ban 1m after 5/10m":           "a ban counts takes that are refused",
		"limit: leaky bucket 5/m queue 3 and ban 1m after 5/10m":     "cannot combine it",
		"limit: 5/m and ban 1m up to 30s after 5/10m":                "up to",
		"limit: 5/m and ban 1m after 500/10m":                        "1 and 100",
		"limit: [concurrency 5 lease 1m, ban 1m up to 1h after 5/m]": "",
	} {
		_, err := Parse(Options{}, File{"f.yaml", []byte("rules: [{name: r, key: client, " + limit + "}]")})
		if got := ""; err != nil {
			if got = err.Error(); want == "" || !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %q", limit, got, want)
			}
		} else if want != "" {
			t.Errorf("%s: was read, want %q", limit, want)
		}
	}
}
