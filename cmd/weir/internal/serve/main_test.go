package serve_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

// TestMain lets the tests start this binary as the real program, under the name weir, and under that of envoyproxy/ratelimit.
func TestMain(m *testing.M) {
	run := func() { os.Exit(program.RunAs(os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
	testscript.Main(m, map[string]func(){"weir": run, "ratelimit": run})
}
