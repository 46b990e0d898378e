package tryout

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// page writes a folder with the files that a page needs, and a link that leads out of it.
func page(t *testing.T) string {
	t.Helper()
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range needed {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestThePlaygroundServesItsFolderOnLoopbackAlone(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	dir := page(t)
	go func() { ended <- run(ctx, dir, write) }()
	line := make([]byte, 200)
	n, err := read.Read(line)
	_, url, found := strings.Cut(string(line[:n]), " at ")
	url, _, _ = strings.Cut(url, " ")
	if err != nil || !found || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("got %q (%v), want the address", line[:n], err)
	}
	for path, want := range map[string]int{"": 200, "worker.js": 200, "link": 500, "../secret": 404, "%2e%2e/secret": 404} {
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want && (want == 200 || answer.StatusCode < 400) || strings.Contains(string(body), "secret") && want != 200 && string(body) == "secret" {
			t.Errorf("/%s: got %d %q, want %d", path, answer.StatusCode, body, want)
		}
		if got := answer.Header.Get("Content-Security-Policy"); want == 200 && got != Policy {
			t.Errorf("/%s: got the policy %q", path, got)
		}
	}
	answer, err := http.Post(url, "text/plain", strings.NewReader("x"))
	if err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST: got %v (%v)", answer, err)
	}
	_ = answer.Body.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAFolderThatIsNotThePageIsRefused(t *testing.T) {
	dir := page(t)
	if err := os.Remove(filepath.Join(dir, "weir.wasm.gz")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, filepath.Join(dir, "none"), filepath.Join(dir, "index.html")} {
		if err := run(t.Context(), name, io.Discard); err == nil || !strings.Contains(err.Error(), "playground: ") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}
