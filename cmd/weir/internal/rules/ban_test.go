package rules

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/weirflow/weir"
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

func TestAnExplanationSaysThatAKeyIsBanned(t *testing.T) {
	config := parsed(t, "rules: [{name: login, match: {path: /login}, key: client, limit: 5/m and ban 1m after 2/10m}]")
	engine := weir.NewMemory(weir.MemoryOptions{})
	request := Attributes{"path": "/login", "client": "192.0.2.1"}
	shown := func() string {
		e, err := config.Explain(context.Background(), request, 1, engine)
		if err != nil {
			t.Fatal(err)
		}
		return e.Text()
	}
	for range 6 {
		if _, err := engine.Take(context.Background(), config.Rule("login").Limit.For("192.0.2.1", 1)); err != nil {
			t.Fatal(err)
		}
	}
	if text := shown(); !strings.Contains(text, "  retry after 1") {
		t.Errorf("a key that is refused: got\n%s", text)
	}
	if _, err := engine.Take(context.Background(), config.Rule("login").Limit.For("192.0.2.1", 1)); err != nil {
		t.Fatal(err)
	}
	if text := shown(); !regexp.MustCompile(`\n  banned for  [0-9m]+(\.[0-9])?s?\n`).MatchString(text) || strings.Contains(text, "retry after") {
		t.Errorf("a key that is banned: got\n%s", text)
	}
}
