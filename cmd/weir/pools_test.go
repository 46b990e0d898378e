package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

// The commands of docs/howto/pools.md do with its files what the page says.
func TestTheCommandsOfPoolsWork(t *testing.T) {
	page, err := os.ReadFile("../../docs/howto/pools.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	blocks := regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		if err := os.WriteFile(block[1], []byte(block[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(blocks) != 2 {
		t.Fatalf("the page has %d files, want 2", len(blocks))
	}
	smaller := strings.Replace(blocks[0][2], "1000/m", "500/m", 1)
	if err := os.WriteFile("smaller.yaml", []byte(smaller), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("unasked.yaml", []byte(strings.Replace(smaller, ", otherwise: pool", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		exit    int
		want    []string
	}{
		{"rules lint weir.yaml", 0, []string{"weir.yaml: 2 rules\n"}},
		{"rules lint unasked.yaml", 0, []string{`warning: unasked.yaml:4:5: rule "pool": is never asked`, "2 rules, 1 warning"}},
		{"rules test weir.test.yaml", 0, []string{"1 test"}},
		{"rules diff weir.yaml smaller.yaml", 1, []string{"~ rule pool, changed, for requests that other rules refuse\n", "+ limit: token bucket 500/m\n"}},
		{"rules diff weir.yaml unasked.yaml", 1, []string{"~ rule floor, changed, for requests of path: /v1*\n    - otherwise: pool\n"}},
		{"explain --config weir.yaml path=/v1/a tenant=acme", 0, []string{`; if it refuses, that of "pool"`, "\nif floor refuses: pool, weir.yaml:4\n"}},
		{"explain --config weir.yaml --format json path=/v1/a tenant=acme", 0, []string{`"otherwise":[{"rule":"pool",`}},
	} {
		var out strings.Builder
		if code := program.Run(strings.Fields(c.command), strings.NewReader(""), &out, &out); code != c.exit {
			t.Errorf("weir %s: exit %d, want %d", c.command, code, c.exit)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("weir %s lacks %q:\n%s", c.command, want, &out)
			}
		}
	}
}
