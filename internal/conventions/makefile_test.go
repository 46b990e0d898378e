package conventions

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The race half of `make test` skips the tests of COUNTS by name, and another stage runs them in the packages of COUNTING. So a name
// that stands for nothing, for two tests or for one elsewhere is a test that nobody runs.
func TestTestsThatTheRaceDetectorSkipsAreRunWithoutIt(t *testing.T) {
	makefile := strings.ReplaceAll(readFile(t, "Makefile"), "\\\n", "")
	packages := strings.Fields(variable(t, makefile, "COUNTING"))
	found := map[string][]string{} // by name, the packages with such a test
	for _, name := range strings.Fields(variable(t, makefile, "COUNTS")) {
		if !strings.HasPrefix(name, "Test") || found[name] != nil {
			t.Errorf("COUNTS of the Makefile names %s, want the name of a test once", name)
		}
		found[name] = []string{}
	}
	for _, f := range goFiles(t) {
		if !f.test {
			continue
		}
		for _, match := range topTest.FindAllStringSubmatch(readFile(t, f.path), -1) {
			if in, ok := found[match[1]]; ok {
				found[match[1]] = append(in, f.pkg)
			}
		}
	}
	for name, in := range found {
		if len(in) != 1 || !slices.Contains(packages, "./"+in[0]) && !slices.Contains(packages, in[0]) {
			t.Errorf("COUNTS of the Makefile names %s, which is a test of %q, want a test of one package of %q", name, in, packages)
		}
	}
}

var topTest = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// variable returns what a line of a Makefile gives a variable.
func variable(t *testing.T, makefile, name string) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindStringSubmatch(makefile)
	if match == nil {
		t.Fatalf("the Makefile has no variable %s", name)
	}
	return match[1]
}
