package gatewaytest

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/testprocess"
)

// envoyVersion is the one that scripts/install-deps.sh installs.
const envoyVersion = "1.40.0"

// Proxy is a running Envoy.
type Proxy struct {
	Admin string // the address of its admin interface
}

// Envoy starts Envoy with a bootstrap configuration, in YAML or JSON, which must listen on addr and names no admin interface.
// Files that it names are relative to a folder of its own.
func Envoy(t testing.TB, addr, config string) *Proxy {
	t.Helper()
	program := envoyProgram(t)
	dir := t.TempDir()
	write(t, dir, "envoy.yaml", config)
	port := testprocess.FreePort(t)
	cmd := exec.Command(program, "--config-path", "envoy.yaml", "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning",
		"--config-yaml", fmt.Sprintf("admin: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}", port))
	cmd.Dir = dir
	start(t, addr, cmd)
	return &Proxy{Admin: "127.0.0.1:" + strconv.Itoa(port)}
}

// envoyProgram returns the file that the variable ENVOY names, or the one of scripts/install-deps.sh.
func envoyProgram(t testing.TB) string {
	t.Helper()
	program := os.Getenv("ENVOY")
	if program == "" {
		cache := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(os.Getenv("HOME"), ".cache"))
		program = filepath.Join(cache, "weir", "envoy-"+envoyVersion)
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("gatewaytest: Envoy is missing (%v); install it with scripts/install-deps.sh, or set ENVOY to the path of an Envoy %s", err, envoyVersion)
	}
	return program
}

// Counter returns a counter of Envoy, such as http.shop.ratelimit.over_limit. One that does not exist yet is 0.
func (p *Proxy) Counter(t testing.TB, name string) int {
	t.Helper()
	response, err := http.Get("http://" + p.Admin + "/stats")
	if err != nil {
		t.Fatalf("gatewaytest: Envoy: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("gatewaytest: Envoy: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+": "); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatalf("gatewaytest: Envoy counts %s as %q", name, value)
			}
			return n
		}
	}
	return 0
}
