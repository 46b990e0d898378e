package rls

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The clients are built from source, which takes minutes the first time, so a make target runs them.
func TestOtherProgramsAreAnswered(t *testing.T) {
	if os.Getenv("WEIR_ENVOY_CLIENTS") == "" {
		t.Skip("make more runs it")
	}
	conn, _, _, _ := startPort(t, time.Second, nil)
	const method = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
	call := callOf(entries("path=/api/x"))
	for _, c := range []struct {
		want    string
		program string
		args    []string
	}{
		{`"overallCode": "OK"`, "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4", []string{"-plaintext", "-d", call, conn.Target(), method}},
		{`"status": "SERVING"`, "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4", []string{"-plaintext", "-d", `{"service":"ratelimit"}`, conn.Target(), "grpc.health.v1.Health/Check"}},
		{`[OK]   200 responses`, "github.com/bojand/ghz/cmd/ghz@v0.93.0", []string{"--insecure", "-n", "200", "-c", "10", "--call", method, "-d", call, conn.Target()}},
		{`response: overall_code:OVER_LIMIT`, "github.com/envoyproxy/ratelimit/src/client_cmd@v1.4.1-0.20260122083618-3fb702589d36", []string{"-dial_string", conn.Target(), "-domain", "shop", "-descriptors", "path=/api/x"}},
	} {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", c.program}, c.args...)...)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		// The text form of messages varies its spaces.
		if err != nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), strings.Join(strings.Fields(c.want), " ")) {
			t.Errorf("%s: %v: got %s, want %s", c.program, err, out, c.want)
		}
	}
}
