package serve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// sample returns a value of a flag that is not its default.
func sample(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return "7"
	case "duration":
		return "7s"
	case "bool":
		return "true"
	}
	return "seven"
}

func TestEveryFlagHasAVariable(t *testing.T) {
	flags := 0
	Command().LocalFlags().VisitAll(func(f *pflag.Flag) {
		flags++
		t.Setenv(variable(f.Name), sample(f))
		cmd := Command()
		if err := setFromEnvironment(cmd); err != nil {
			t.Fatal(err)
		}
		if got := cmd.Flags().Lookup(f.Name).Value.String(); strings.Trim(got, "[]") != sample(f) {
			t.Errorf("%s=%s: --%s is %s", variable(f.Name), sample(f), f.Name, got)
		}
		if !cmd.Flags().Changed(f.Name) {
			t.Errorf("%s leaves --%s as if it were not set, so that files would go before it", variable(f.Name), f.Name)
		}
	})
	if flags < 20 {
		t.Errorf("only %d flags were tried", flags)
	}
}

func TestFlagsGoBeforeVariables(t *testing.T) {
	t.Setenv("WEIR_RULE", "a=5/m\nb=6/m\n")
	t.Setenv("WEIR_HTTP", "127.0.0.1:1")
	t.Setenv("WEIR_STATE", "")
	cmd := Command()
	if err := cmd.ParseFlags([]string{"--http", "127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	if err := setFromEnvironment(cmd); err != nil {
		t.Fatal(err)
	}
	rules, _ := cmd.Flags().GetStringArray("rule")
	if got := fmt.Sprintf("%q %s %v", rules, cmd.Flags().Lookup("http").Value, cmd.Flags().Changed("state")); got != `["a=5/m" "b=6/m"] 127.0.0.1:2 false` {
		t.Errorf("got %s", got)
	}
	t.Setenv("WEIR_MAX_KEYS", "many")
	if err := setFromEnvironment(Command()); err == nil || !strings.Contains(err.Error(), "WEIR_MAX_KEYS: invalid argument") {
		t.Errorf("a value that is no number: got %v", err)
	}
}
