package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The workflows cannot run here, so they hold nothing that is not run here, too: `.ci/run`, and targets of the Makefile.
func TestWorkflowsRunWhatCIAndPeopleRun(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	workflows, _ := filepath.Glob("../../.github/workflows/*.yml")
	steps := 0
	for _, path := range workflows {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range regexp.MustCompile(`(?m)^\s*(?:- )?run: *(.*)$`).FindAllStringSubmatch(string(text), -1) {
			steps++
			target, made := strings.CutPrefix(step[1], "make ")
			switch {
			case step[1] == ".ci/run", strings.HasPrefix(step[1], "gh release create "):
			case !made || !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).Match(makefile):
				t.Errorf("%s runs %q, want .ci/run or a target of the Makefile", filepath.Base(path), step[1])
			}
		}
	}
	if steps < 4 {
		t.Errorf("%d workflows have %d steps, want 4 at least", len(workflows), steps)
	}
}

func TestAWrongSubjectIsFound(t *testing.T) {
	c := copyProject(t)
	c.run("git", "commit", "--quiet", "--amend", "--message", "weir: is copied")
	for subject, wrong := range map[string]bool{
		"pace: " + strings.Repeat("x", 66): false,
		"pace: " + strings.Repeat("x", 67): true,
		"mend waiting":                     true,
	} {
		c.run("git", "commit", "--quiet", "--allow-empty", "--message", subject)
		if said, err := attempt(c.dir, nil, "scripts/subjects.sh"); (err != nil) != wrong || wrong && !strings.Contains(said, subject) {
			t.Errorf("%q: %v\n%s", subject, err, said)
		}
		c.run("git", "reset", "--quiet", "--hard", "HEAD~")
	}
}

func TestChecksumsAreSignedWithAKeyAlone(t *testing.T) {
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Fatal("gpg is missing; run scripts/install-deps.sh")
	}
	c, home := copyProject(t), t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if said, err := attempt(c.dir, nil, "scripts/sign.sh"); err == nil || !strings.Contains(said, "make dist") {
		t.Errorf("without dist: %v, %s", err, said)
	}
	c.run("mkdir", "dist")
	c.run("sh", "-c", "echo 'sum  file' >dist/SHA256SUMS")
	if said := run(t, c.dir, []string{"SIGNING_KEY="}, "scripts/sign.sh"); !strings.Contains(said, "not signed") {
		t.Errorf("without a key it says %q", said)
	}
	gpg := []string{"GNUPGHOME=" + home}
	run(t, c.dir, gpg, "gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "tester@example.com", "ed25519", "sign")
	defer run(t, c.dir, gpg, "gpgconf", "--kill", "gpg-agent")
	key := run(t, c.dir, gpg, "gpg", "--batch", "--armor", "--export-secret-keys")
	run(t, c.dir, []string{"SIGNING_KEY=" + key}, "scripts/sign.sh")
	run(t, c.dir, gpg, "gpg", "--batch", "--verify", "dist/SHA256SUMS.asc", "dist/SHA256SUMS")
}
