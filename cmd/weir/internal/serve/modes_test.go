//go:build unix

package serve

import (
	"bytes"
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
