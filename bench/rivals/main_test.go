package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestACallThatIsNotAdmittedFailsTheRun(t *testing.T) {
	lines, err := measured(t.Context(), t.TempDir(), "printf", `one, all\t12.5\t7\t7\ntwo, one refused\t3.0\t6\t7\n`)
	if err != nil || len(lines) != 2 || lines[0] != (line{"one, all", 12.5, 7, 7}) {
		t.Fatalf("got %v and error %v, want two lines", lines, err)
	}
	if text, err := table(lines[:1]); err != nil || !strings.Contains(text, "| one, all | 12.5 |") {
		t.Errorf("got %q and error %v", text, err)
	}
	if _, err := table(lines); err == nil || !strings.Contains(err.Error(), "two") {
		t.Errorf("a refused call gives error %v, want one of line two", err)
	}
}

func TestAToolThatIsMissingIsKnown(t *testing.T) {
	_, err := measured(t.Context(), t.TempDir(), "weir-has-no-such-tool")
	if missing, ok := errors.AsType[*exec.Error](err); !ok || !strings.Contains(missing.Error(), "weir-has-no-such-tool") {
		t.Errorf("got error %v, want one that names the tool", err)
	}
}
