// Package release tests the commands that make a version, each on a copy of the project.
package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	modulePath = "github.com/weirflow/weir"
	version    = "v0.99.0" // is never reached
)

// copied is a repository with the files of the project, committed or not, and without its tags.
type copied struct {
	t   *testing.T
	dir string
}

func copyProject(t *testing.T) copied {
	t.Helper()
	c := copied{t, filepath.Join(t.TempDir(), "weir")}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	run(t, root, nil, "git", "init", "--quiet", c.dir)
	run(t, root, nil, "git", "--git-dir", filepath.Join(c.dir, ".git"), "--work-tree", root, "add", "--all")
	c.run("git", "config", "user.name", "Tester")
	c.run("git", "config", "user.email", "tester@example.com")
	c.run("git", "commit", "--quiet", "--message", "the project")
	c.run("git", "reset", "--quiet", "--hard")
	return c
}

func (c copied) run(command ...string) string {
	c.t.Helper()
	return run(c.t, c.dir, nil, command...)
}

// change replaces old by its replacement once in a file, and commits.
func (c copied) change(path, old, replacement string) {
	c.t.Helper()
	path = filepath.Join(c.dir, path)
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		c.t.Fatalf("%s holds no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, replacement, 1)), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.run("git", "commit", "--quiet", "--all", "--message", "change "+filepath.Base(path))
}

// ready gives the version of the tests its heading in the changelog.
func (c copied) ready() {
	c.t.Helper()
	c.change("CHANGELOG.md", "# Changelog\n", "# Changelog\n\n## "+version+"\n")
}

// run returns what a command says, and ends the test if it fails.
func run(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	said, err := attempt(dir, env, command...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, said)
	}
	return said
}

func attempt(dir string, env []string, command ...string) (said string, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
