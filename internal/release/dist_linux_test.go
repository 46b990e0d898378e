package release

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The second build has another folder and an empty cache. It needs GNU tar, and dpkg to install the deb.
func TestTwoBuildsOfAVersionAreEqualByteForByteAndTheirPackagesWork(t *testing.T) {
	if !everything {
		t.Skip("make more runs it: it builds the program twice, for minutes")
	}
	c := copyProject(t)
	c.ready()
	before := c.run("git", "rev-parse", "HEAD")
	folder, platforms := filepath.Join(t.TempDir(), "release"), "PLATFORMS=linux/"+runtime.GOARCH
	t.Log(c.run("make", "release-dry", "VERSION="+version, "FOLDER="+folder, platforms))
	if after, tags := c.run("git", "rev-parse", "HEAD"), c.run("git", "tag"); after != before || tags != "" {
		t.Errorf("the commit was %s and is %s, and the tags are %q: want none, and nothing changed", before, after, tags)
	}
	if said := run(t, folder, nil, "bin/weir", "version"); !strings.HasPrefix(said, "weir "+version+" ") {
		t.Errorf("weir version says %q of the program that go install made, want %s", said, version)
	}
	first, second := filepath.Join(folder, "weir"), filepath.Join(t.TempDir(), "elsewhere")
	run(t, folder, nil, "git", "clone", "--quiet", first, second)
	run(t, second, []string{"GOCACHE=" + t.TempDir()}, "make", "dist", platforms)

	dist := filepath.Join(folder, "dist")
	sums := run(t, dist, nil, "cat", "SHA256SUMS")
	if other := run(t, filepath.Join(second, "dist"), nil, "cat", "SHA256SUMS"); sums != other {
		t.Errorf("two builds of one commit have the sums\n%s\nand\n%s", sums, other)
	}
	run(t, dist, nil, "sha256sum", "--check", "--strict", "SHA256SUMS")
	checkProgram(t, only(t, dist, "*.tar.gz"), strings.TrimSpace(run(t, first, nil, "git", "rev-parse", "HEAD")))
	checkDeb(t, only(t, dist, "*.deb"))
	checkComponents(t, only(t, dist, "*.cdx.json"))
	checkRuns(t, checkImage(t, only(t, dist, "*_image.tar")))
	if rpm := run(t, dist, nil, "head", "-c", "4", only(t, dist, "*.rpm")); rpm != "\xed\xab\xee\xdb" {
		t.Errorf("the rpm begins with %q", rpm)
	}
}

// only returns the one file of a folder that matches the pattern.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s: %v, %v; want one file", pattern, paths, err)
	}
	return paths[0]
}

// The program of the archive is static and names its version and commit. Beside it are man pages and completions.
func checkProgram(t *testing.T, archive, commit string) {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, nil, "tar", "--extract", "--file", archive)
	program := filepath.Join(dir, "weir")
	if said := run(t, dir, nil, program, "version"); !strings.HasPrefix(said, "weir "+version+" ") || !strings.Contains(said, "\ncommit "+commit+" of ") {
		t.Errorf("weir version says %q, want %s and the commit %s", said, version, commit)
	}
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("the program asks for a dynamic linker, want a static one")
		}
	}
	for _, path := range []string{"LICENSE", "man/weir-serve.1.gz", "completions/zsh/_weir", "playground/index.html", "playground/weir.wasm.gz"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Error(err)
		}
	}
}

// The deb is installed below a folder of its own, with the scripts that it brings. A removal keeps what the operator has
// changed, and a purge leaves nothing.
func checkDeb(t *testing.T, deb string) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"updates", "info", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dpkg := func(arguments ...string) {
		t.Helper()
		run(t, root, nil, append([]string{"dpkg", "--root", root, "--force-script-chrootless", "--force-not-root", "--log", "/dev/null"}, arguments...)...)
	}
	dpkg("--install", deb)
	if said := run(t, root, nil, filepath.Join(root, "usr/bin/weir"), "version"); !strings.HasPrefix(said, "weir "+version+" ") {
		t.Errorf("the installed program says %q, want %s", said, version)
	}
	run(t, root, nil, filepath.Join(root, "usr/bin/weir"), "rules", "lint", filepath.Join(root, "etc/weir"))
	dpkg("--remove", "weir")
	if left := files(t, root); left != "etc/weir/weir.yaml\n" {
		t.Errorf("a removal leaves %q, want the rules alone", left)
	}
	dpkg("--purge", "weir")
	if left := files(t, root); left != "" {
		t.Errorf("a purge leaves %q, want nothing", left)
	}
}

// files lists the files below a root, one a line, without what dpkg keeps.
func files(t *testing.T, root string) string {
	t.Helper()
	return run(t, root, nil, "find", ".", "-path", "./var/lib/dpkg", "-prune", "-o", "-type", "f", "-printf", `%P\n`)
}

func checkComponents(t *testing.T, path string) {
	t.Helper()
	var list struct {
		Components []struct{ Name, Version string }
	}
	decode(t, path, &list)
	versions := map[string]string{}
	for _, component := range list.Components {
		versions[component.Name] = component.Version
	}
	if versions[modulePath] != version || versions[modulePath+"/redislimit"] != version || versions["github.com/spf13/cobra"] == "" || versions["std"] == "" {
		t.Errorf("the components are %v; want the library and redislimit at %s, cobra and std", versions, version)
	}
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
