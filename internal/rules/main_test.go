// Package rules holds the project to rules that no compiler knows: which package imports which, what modules require, and
// that documents are true to the code.
package rules

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the project.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
