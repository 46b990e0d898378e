package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

// The rules of examples/from pass their tests, and those that are imported are what the program makes.
func TestTheRulesOfOtherSystemsDecideAsTheirPagesSay(t *testing.T) {
	t.Chdir("../../examples/from")
	tests, err := filepath.Glob("*/weir.test.yaml")
	if err != nil || len(tests) < 3 {
		t.Fatalf("tests of rules: %q, %v, want three at least", tests, err)
	}
	for _, test := range tests {
		var out, errs strings.Builder
		if code := program.Run([]string{"rules", "test", test}, strings.NewReader(""), &out, &errs); code != 0 {
			t.Errorf("weir rules test %s: exit %d: %s%s", test, code, &out, &errs)
		}
	}
	for from, args := range map[string][]string{"nginx": {"nginx", "nginx/nginx.conf"}, "envoyproxy": {"envoyproxy", "envoyproxy/config"}} {
		var made strings.Builder
		if code := program.Run(append([]string{"rules", "import"}, args...), strings.NewReader(""), &made, io.Discard); code != 0 {
			t.Errorf("weir rules import %q: exit %d", args, code)
		}
		want, err := os.ReadFile(filepath.Join(from, "weir.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if rulesOnly(made.String()) != rulesOnly(string(want)) {
			t.Errorf("weir rules import %q made\n%s\nand %s/weir.yaml has\n%s", args, made.String(), from, want)
		}
	}
}

// rulesOnly returns a rules file without the comments at its head.
func rulesOnly(file string) string { return file[strings.Index(file, "rules:"):] }

// People come with the names of the systems that they leave.
func TestTheNamesThatPeopleKnowStandOnTheirPages(t *testing.T) {
	for page, names := range map[string][]string{
		"from/guava.md":                {"SmoothBursty", "SmoothWarmingUp", "nextFreeTicket", "storedPermits"},
		"from/redis-recipes.md":        {"record_fixed_window", "fetch_fixed_window", "record_sliding_log", "sliding_window_count"},
		"from/tokio.md":                {"DashMap", "back-off"},
		"from/rolling-rate-limiter.md": {"Dojo"},
		"from/nginx.md":                {"sticky sessions", "limit_req zone"},
		"howto/machines.md":            {"sticky sessions"},
		"from/rategate.md":             {"singleton", "pizza oven"},
		"from/resilience4j.md":         {"limitForPeriod", "limitRefreshPeriod"},
		"from/redis-cell.md":           {"CL.THROTTLE", "GCRA"},
	} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(string(text), name) {
				t.Errorf("docs/%s does not say %s", page, name)
			}
		}
	}
}
