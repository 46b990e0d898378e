package release

import (
	"strings"
	"testing"
)

func TestAFunctionThatIsRemovedSinceTheLastTagIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the project twice: make long runs it")
	}
	c := copyProject(t)
	env := []string{"GOFLAGS=-trimpath"} // the next test run needs to compile none of it again
	if said := run(t, c.dir, env, "make", "apidiff"); !strings.Contains(said, "no version is tagged yet") {
		t.Errorf("without a tag, make apidiff says %q", said)
	}

	c.change("rate.go", "// PerSecond ", "// Old does nothing.\nfunc Old() {}\n\n// PerSecond ")
	c.run("git", "tag", version)
	c.change("rate.go", "Old() {}", "Later() {}")
	said, err := attempt(c.dir, env, "make", "apidiff")
	if err == nil || !strings.Contains(said, "- Old: removed") || !strings.Contains(said, "- Later: added") {
		t.Errorf("make apidiff: %v, and it says %q; want an error, and that Old is removed and Later is added", err, said)
	}
}
