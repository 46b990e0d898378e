package serve

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

func TestTwoRulesOfOneNameAreRefused(t *testing.T) {
	for _, again := range []string{"a=2/s", "a=1/s"} {
		rules, err := parseRules([]string{"a=1/s", "default=fixed window 5/m", again})
		if err == nil || cli.Report(io.Discard, err) != 2 || !strings.Contains(err.Error(), "--rule a=1/s and --rule "+again+" have the same name") {
			t.Errorf("a=1/s and %s: got %v and error %v, want an error that names both", again, rules, err)
		}
	}
}

func TestDefaultRuleIsThereOnlyIfNoneIsGiven(t *testing.T) {
	for _, test := range []struct {
		given []string
		want  string
	}{
		{nil, defaultRule},
		{[]string{"login=60/m"}, "login=token bucket 60/m"},
	} {
		rules, err := parseRules(test.given)
		if err != nil || len(rules) != 1 || rules[0].String() != test.want {
			t.Errorf("%q: got %v and error %v, want the one rule %s", test.given, rules, err, test.want)
		}
	}
}

func TestPrintedAddressCanBeReached(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80",
		"[::1]:80":     "[::1]:80",
		"0.0.0.0:80":   "127.0.0.1:80",
		"[::]:80":      "localhost:80",
		":80":          "localhost:80",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(tcp); got != want {
			t.Errorf("listening on %s: printed %s, want %s", address, got, want)
		}
	}
}
