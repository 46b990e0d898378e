package release

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// everything is set by make more: it also compiles gRPC, Prometheus, OpenTelemetry and the program, for minutes.
var everything = os.Getenv("WEIR_RELEASE") != ""

func TestAProgramElsewhereBuildsAgainstTheTagsWithGoGetAlone(t *testing.T) {
	c := copyProject(t)
	c.ready()
	c.run("scripts/tag.sh", version)
	tags := strings.Fields(c.run("git", "tag", "--points-at", "HEAD"))
	if want := tagsOfContributing(t); !slices.Equal(tags, want) {
		t.Errorf("tag.sh makes %q, want the tags of the table in CONTRIBUTING.md, %q", tags, want)
	}

	if heading := "\n## " + version + " (" + time.Now().UTC().Format(time.DateOnly) + ")\n"; !strings.Contains(c.run("cat", "CHANGELOG.md"), heading) {
		t.Errorf("CHANGELOG.md has no heading %q", heading)
	}

	env := proxied(t, c)
	packages := []string{""}
	if !testing.Short() {
		packages = append(packages, "/httplimit", "/redislimit", "/sqllimit")
	}
	if everything {
		packages = append(packages, "/fetch", "/grpclimit", "/otellimit", "/promlimit")
	}
	buildElsewhere(t, env, packages)

	// The workspace takes its modules from their folders, although no proxy has their versions yet.
	run(t, c.dir, []string{"GOPROXY=off"}, "go", "list", "-deps", "work")
	if changed := c.run("git", "status", "--porcelain"); changed != "" {
		t.Errorf("the workspace changes files of the tagged commit:\n%s", changed)
	}
}

// buildElsewhere gets the modules of packages, which are relative to the root, and builds and runs a program that imports them.
func buildElsewhere(t *testing.T, env, packages []string) {
	t.Helper()
	program := "package main\n\nimport (\n"
	get := []string{"go", "get"}
	for _, pkg := range packages {
		program += "\t_ \"" + modulePath + pkg + "\"\n"
		get = append(get, modulePath+pkg+"@"+version)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program+")\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, env, "go", "mod", "init", "example.com/user")
	run(t, dir, env, get...)
	run(t, dir, env, "go", "run", "-trimpath", ".") // -trimpath: the next test run needs to compile none of it again
}

// tagsOfContributing returns the tags in the table of modules in CONTRIBUTING.md, sorted, but of this version.
func tagsOfContributing(t *testing.T) (tags []string) {
	t.Helper()
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) > 3 && strings.HasSuffix(cells[2], "v0.1.0`") {
			tags = append(tags, strings.Replace(strings.Trim(cells[2], "`"), "v0.1.0", version, 1))
		}
	}
	slices.Sort(tags)
	return tags
}

func TestAVersionThatCannotBeTaggedLeavesTheRepositoryAsItWas(t *testing.T) {
	c := copyProject(t)
	before := c.run("git", "rev-parse", "HEAD")
	refuse := func(version, want string) {
		t.Helper()
		if said, err := attempt(c.dir, nil, "scripts/tag.sh", version); err == nil || !strings.Contains(said, want) {
			t.Errorf("tag.sh %q: %v, and it says %q, want %q", version, err, said, want)
		}
	}
	refuse("", "VERSION is ''")
	refuse("0.1.0", "VERSION is '0.1.0'")
	refuse(version, "CHANGELOG.md has no heading '## v0.99.0'")
	c.run("git", "tag", "redislimit/"+version)
	if err := os.WriteFile(filepath.Join(c.dir, "CHANGELOG.md"), []byte("## "+version+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuse(version, "the working tree has changes")
	c.run("git", "commit", "--quiet", "--all", "--message", "changelog")
	refuse(version, "the tag redislimit/v0.99.0 exists")
	c.run("git", "reset", "--quiet", "--hard", "HEAD^")
	if after, tags := c.run("git", "rev-parse", "HEAD"), c.run("git", "tag"); after != before || tags != "redislimit/"+version+"\n" {
		t.Errorf("the commit was %s and is %s, and the tags are %q", before, after, tags)
	}
}

// proxied returns the environment of a user of the Go tool, for whom a proxy in files has the modules that are tagged in
// the copy. Modules of others come from the cache of this machine.
func proxied(t *testing.T, c copied) []string {
	t.Helper()
	others := "file://" + strings.TrimSpace(run(t, ".", nil, "go", "env", "GOMODCACHE")) + "/cache/download"
	public := strings.TrimSpace(run(t, ".", nil, "go", "env", "GOPROXY"))
	modules := t.TempDir()
	c.run("scripts/modules.sh", version, modules)
	return []string{"GOWORK=off", "GOFLAGS=-modcacherw", "GONOSUMDB=*", "GOMODCACHE=" + t.TempDir(), "GOPROXY=file://" + modules + "," + others + "," + public}
}
