package measure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Builds are two builds of one program of the bench: of an earlier commit, and of the present checkout. Call Close at
// the end.
type Builds struct {
	program string
	folder  string // of the binaries and the worktree
}

// NewBuilds checks out an earlier commit of the repository in the working directory. The checkout gets the present
// rooms, folders of the bench, in place of its own. So both builds speak with each other and run the same workload. The
// earlier commit needs the parts of the API that the rooms use.
func NewBuilds(program, commit string, rooms ...string) (*Builds, error) {
	folder, err := os.MkdirTemp("", "weir-pairs-")
	if err != nil {
		return nil, err
	}
	b := &Builds{program, folder}
	if err := b.checkOut(commit, rooms); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Builds) checkOut(commit string, rooms []string) error {
	if err := command("", "git", "worktree", "add", "--detach", "--quiet", b.tree(), commit); err != nil {
		return err
	}
	for _, room := range rooms {
		old := filepath.Join(b.tree(), room)
		if err := os.RemoveAll(old); err != nil {
			return err
		}
		if err := os.CopyFS(old, os.DirFS(room)); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builds) tree() string { return filepath.Join(b.folder, "tree") }

// Before returns the path of the earlier build's binary.
func (b *Builds) Before() string { return filepath.Join(b.folder, "before") }

// After returns the path of the present build's binary.
func (b *Builds) After() string { return filepath.Join(b.folder, "after") }

// Build builds both binaries. Each round has another layout of the code.
func (b *Builds) Build(round int) error {
	for binary, tree := range map[string]string{b.Before(): b.tree(), b.After(): "."} {
		if err := command(tree, "go", "build", "-ldflags", fmt.Sprint("-randlayout=", round+1), "-o", binary, "./"+b.program); err != nil {
			return err
		}
	}
	return nil
}

// Close removes the binaries and the checkout.
func (b *Builds) Close() {
	_ = command("", "git", "worktree", "remove", "--force", b.tree())
	_ = os.RemoveAll(b.folder)
}

// command runs a program in a folder. Its output belongs to the error.
func command(folder, name string, arguments ...string) error {
	c := exec.Command(name, arguments...)
	c.Dir = folder
	if output, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return nil
}
