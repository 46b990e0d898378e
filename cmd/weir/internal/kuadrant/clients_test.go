package kuadrant

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// The client is built from source, which takes minutes the first time, so a make target runs it.
func TestOtherProgramsAreAnswered(t *testing.T) {
	if os.Getenv("WEIR_ENVOY_CLIENTS") == "" {
		t.Skip("make more runs it")
	}
	conn := start(t, models, auth.Local, false)
	grpcurl := func(method, call string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", "run", "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4", "-plaintext", "-d", call, conn.Target(), "kuadrant.service.ratelimit.v1.RateLimitService/"+method)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOWORK=off")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v: %s", method, call, err, out)
		}
		return strings.Join(strings.Fields(string(out)), "")
	}
	held := grpcurl("Reserve", of("user=ann", `,"amount":400,"ttl":"30s"`))
	id, found := strings.CutPrefix(held, `{"code":"OK","reservationId":"`)
	if !found {
		t.Fatalf("Reserve: %s", held)
	}
	commit := of("user=ann", `,"reservationId":"`+strings.TrimSuffix(id, `"}`)+`","actualAmount":30`)
	for _, c := range []struct{ method, call, want string }{
		{"Commit", commit, `{"reservationReleased":true}`},
		{"Commit", commit, `{}`},
		{"Report", of("user=ann", `,"hitsAddend":970`), `{"overallCode":"OK"}`},
		{"Reserve", of("user=ann", ``), `{"code":"OVER_LIMIT"}`},
	} {
		if got := grpcurl(c.method, c.call); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.call, got, c.want)
		}
	}
}
