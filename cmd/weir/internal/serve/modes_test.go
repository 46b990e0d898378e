//go:build unix

package serve

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

func TestAFileThatOtherUsersMayChangeOrReadIsInTheLog(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		tokens, cert, key, ca os.FileMode
		want                  []string // flags
	}{
		{0o600, 0o644, 0o600, 0o644, nil},
		{0o664, 0o664, 0o640, 0o664, nil}, // a group is chosen
		{0o666, 0o644, 0o644, 0o644, []string{"--tokens", "--tls-key"}},
		{0o600, 0o646, 0o602, 0o602, []string{"--tls-client-ca", "--tls-cert", "--tls-key"}},
	} {
		o := &portOptions{files: auth.Files{Tokens: filepath.Join(folder, "tokens"), Cert: filepath.Join(folder, "cert"), Key: filepath.Join(folder, "key"), ClientCA: filepath.Join(folder, "ca")}}
		for path, mode := range map[string]os.FileMode{o.files.Tokens: c.tokens, o.files.Cert: c.cert, o.files.Key: c.key, o.files.ClientCA: c.ca} {
			writeFile(t, path, "")
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		o.warnOfModes(slog.New(slog.NewTextHandler(&log, nil)))
		lines := strings.Count(log.String(), "level=WARN")
		for _, flag := range c.want {
			if !strings.Contains(log.String(), "flag="+flag+" ") {
				t.Errorf("%v: %s is not in the log\n%s", c, flag, &log)
			}
		}
		if lines != len(c.want) {
			t.Errorf("%v: got the log\n%s, want a line for each of %v", c, &log, c.want)
		}
	}
	var log bytes.Buffer
	if (&portOptions{}).warnOfModes(slog.New(slog.NewTextHandler(&log, nil))); log.Len() != 0 {
		t.Errorf("without files the log is %s", &log)
	}
}

// The secret of events is warned of as the other secrets are.
func TestASecretOfEventsThatOtherUsersMayReadIsInTheLog(t *testing.T) {
	for mode, warned := range map[os.FileMode]bool{0o640: false, 0o644: true} {
		secret := filepath.Join(t.TempDir(), "notify.secret")
		writeFile(t, secret, "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n")
		if err := os.Chmod(secret, mode); err != nil {
			t.Fatal(err)
		}
		_, log := startLoggedDaemon(t, "--http", "127.0.0.1:0", "--notify", "https://127.0.0.1:1/", "--notify-secret", secret, "--rule", "default=quota 10/day")
		text := log()
		if got := strings.Contains(text, "can sign events as the daemon") && strings.Contains(text, "flag=--notify-secret "); got != warned {
			t.Errorf("with the mode %v: got the log %s, want a warning: %v", mode, text, warned)
		}
	}
}
