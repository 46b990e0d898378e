package redislimit

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/internal/redistest"
)

func TestAServerThatIsTooOldIsRefused(t *testing.T) {
	server := redistest.Start(t)
	version := server.Info("redis_version")
	for _, tt := range []struct{ says, tooOld, warning string }{
		{"5.99999999", "5.9", ""}, {"5.0.9999999", "5.0", ""}, {"6.0.9999999", "", "use 6.2 or later"}, {"6.2.9999999", "", ""}, {"10.0.999999", "", ""},
	} {
		link := startProxy(t, server.Addr)
		says := tt.says[:len(version)] // the same length, since that of the reply is before it
		link.rewrite.Store(func(reply []byte) []byte {
			return bytes.ReplaceAll(reply, []byte("redis_version:"+version), []byte("redis_version:"+says))
		})
		engine, err := Open("redis://"+link.addr, Options{})
		if tt.tooOld == "" {
			if err != nil {
				t.Fatalf("Open of Redis %s: %v", says, err)
			}
			defer engine.Close()
			if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) > 1 || (len(warnings) == 1) != (tt.warning != "") || !strings.Contains(strings.Join(warnings, ""), tt.warning) {
				t.Errorf("Warnings of Redis %s: %q, %v, want one with %q", says, warnings, err, tt.warning)
			}
			continue
		}
		failed, ok := errors.AsType[*Error](err)
		if !ok || failed.Reason != TooOld || failed.Op != "open" || !strings.Contains(err.Error(), tt.tooOld) || !strings.Contains(err.Error(), "6.0 or later") || !strings.Contains(err.Error(), link.addr) {
			t.Errorf("Open of Redis %s: %v, want an error that names it, its address and 6.0", says, err)
		}
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{link.addr}, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		engine, err = New(client, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Warnings(t.Context()); err == nil || !strings.Contains(err.Error(), "6.0 or later") {
			t.Errorf("Warnings of Redis %s: %v, want an error that names 6.0", says, err)
		}
	}
}
