package browsertest

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

// TestMain lets the tests start this binary as the real program, under the name weir.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": func() { os.Exit(program.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }})
}
