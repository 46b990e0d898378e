package conventions

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRootModuleRequiresNothing(t *testing.T) {
	if got := directRequirements(t, "."); len(got) != 0 {
		t.Errorf("go.mod of the root requires %q, want nothing: users of the library pay for no dependency", got)
	}
	if _, err := os.Stat("go.sum"); err == nil {
		t.Error("the root has a go.sum, want none: it requires nothing")
	}
}

// modules returns the folders that go.work uses.
func modules(t *testing.T) (dirs []string) {
	t.Helper()
	var work struct{ Use []struct{ DiskPath string } }
	readFile(t, "go.work") // so that the go command knows that the result depends on it
	goJSON(t, &work, "work", "edit", "-json")
	for _, use := range work.Use {
		dirs = append(dirs, strings.TrimPrefix(use.DiskPath, "./"))
	}
	return dirs
}

var requirements = map[string][]string{} // by folder, of the modules read so far

// directRequirements returns the requirements of the go.mod in dir that are not indirect.
func directRequirements(t *testing.T, dir string) (paths []string) {
	t.Helper()
	if known, ok := requirements[dir]; ok {
		return known
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	readFile(t, filepath.Join(dir, "go.mod"))
	goJSON(t, &mod, "mod", "edit", "-json", filepath.Join(dir, "go.mod"))
	for _, required := range mod.Require {
		if !required.Indirect {
			paths = append(paths, required.Path)
		}
	}
	requirements[dir] = paths
	return paths
}

func goJSON(t *testing.T, into any, arguments ...string) {
	t.Helper()
	inRoot()
	out, err := exec.Command("go", arguments...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(arguments, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("go %s: %v", strings.Join(arguments, " "), err)
	}
}
