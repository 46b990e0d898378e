package gatewaytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Without Envoy a test fails, and one line says how to get it. The test runs itself that way.
func TestWithoutEnvoyATestFailsWithALineThatSaysHowToGetIt(t *testing.T) {
	if os.Getenv("WITHOUT_ENVOY") != "" {
		Envoy(t, "127.0.0.1:1", "")
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]string{"no file": "ENVOY=" + filepath.Join(t.TempDir(), "envoy"), "an empty cache": "XDG_CACHE_HOME=" + t.TempDir()} {
		cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "ENVOY=", "CI=", "WITHOUT_ENVOY=1", env)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--- FAIL") || strings.Count(string(out), "scripts/install-deps.sh") != 1 {
			t.Errorf("%s: %v, want a failure and a line that names scripts/install-deps.sh:\n%s", name, err, out)
		}
	}
}

// The script, the tests and the Compose file have one version of Envoy.
func TestTheVersionOfEnvoyIsOne(t *testing.T) {
	minor := envoyVersion[:strings.LastIndex(envoyVersion, ".")]
	for file, want := range map[string]string{
		"scripts/install-deps.sh":     "\nenvoy_version=" + envoyVersion + "\n",
		"deploy/compose/compose.yaml": "image: envoyproxy/envoy:v" + minor + "-latest\n",
		"docs/howto/envoy.md":         "Envoy " + minor + ".",
	} {
		text, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not contain %q", file, want)
		}
	}
}
