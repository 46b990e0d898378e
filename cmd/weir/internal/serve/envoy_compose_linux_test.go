package serve

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/redistest"
)

// TestTheComposeFilesLimitEachAddress runs the processes of deploy/compose by its files, on free ports and with timeouts for a busy
// machine. Each client claims other addresses, and gets the 50 requests that compose.yaml promises, and ten more each second.
func TestTheComposeFilesLimitEachAddress(t *testing.T) {
	t.Parallel()
	const folder = "../../../../deploy/compose/"
	grpc, metrics, entry, shop := loopback(t), loopback(t), loopback(t), loopback(t)
	admin := filepath.Join(t.TempDir(), "admin.sock")
	serveProcess(t, "127.0.0.1:0", append(composeCommand(t, folder, map[string]string{
		"--grpc":    grpc,
		"--metrics": metrics,
		"--admin":   "unix:" + admin,
		"--config":  folder + "weir.yaml",
		"--engine":  "redis://" + redistest.Start(t).Addr,
	}), "--deadline", "30s")...)
	config, err := os.ReadFile(folder + "envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	envoy := gatewaytest.Envoy(t, entry, replaceAll(t, string(config), map[string]string{
		"address: 0.0.0.0, port_value: 10000": socketAddress(entry), "address: 127.0.0.1, port_value: 10001": socketAddress(shop),
		"address: weir, port_value: 8081": socketAddress(grpc), "timeout: 0.1s": "timeout: 30s", "connect_timeout: 1s": "connect_timeout: 30s",
	}))
	refused := 0
	for _, client := range []string{"127.0.0.1", "127.0.0.2"} {
		began, admitted := time.Now(), 0
		for i := range 100 {
			response, body := askFrom(t, client, "http://"+entry+"/", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
			switch {
			case response.StatusCode == http.StatusOK && body == "hello\n":
				admitted++
			case response.StatusCode == http.StatusTooManyRequests && body == "Too many requests." && response.Header.Get("Retry-After") == "1":
				refused++
			default:
				t.Fatalf("request %d of %s: %d %q %v", i+1, client, response.StatusCode, body, response.Header)
			}
			if got := response.Header.Get("RateLimit-Policy"); got != `"address";q=50;w=5` {
				t.Errorf("request %d of %s: RateLimit-Policy %q", i+1, client, got)
			}
		}
		if most := 50 + int(10*time.Since(began).Seconds()) + 1; admitted < 50 || admitted > most {
			t.Errorf("%s was admitted %d times, want 50 to %d", client, admitted, most)
		}
	}
	if got := envoy.Counter(t, "cluster.shop.ratelimit.over_limit"); got != refused || refused == 0 {
		t.Errorf("Envoy counts %d refusals, want the %d that its clients got, and at least one", got, refused)
	}
	if got := refusals(t, admin); got["address"] != refused {
		t.Errorf("Weir counts the refusals %v, want %d", got, refused)
	}
}

// composeCommand returns the arguments of weir in compose.yaml, with these values of flags, and without --http.
func composeCommand(t *testing.T, folder string, values map[string]string) (command []string) {
	t.Helper()
	text, err := os.ReadFile(folder + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Services struct {
			Weir struct {
				Command []string `yaml:"command"`
			} `yaml:"weir"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		t.Fatal(err)
	}
	command = slices.DeleteFunc(project.Services.Weir.Command, func(word string) bool { return strings.HasPrefix(word, "--http=") })
	if !slices.Contains(command, "--grpc=0.0.0.0:8081") {
		t.Errorf("compose.yaml starts weir with %q, and Envoy asks at port 8081", command)
	}
	for name, value := range values {
		at := slices.IndexFunc(command, func(word string) bool { return strings.HasPrefix(word, name+"=") })
		if at < 0 {
			t.Fatalf("compose.yaml starts weir without %s: %q", name, command)
		}
		command[at] = name + "=" + value
	}
	return command
}

// socketAddress returns an address as Envoy's configuration has it.
func socketAddress(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return "address: " + host + ", port_value: " + port
}
