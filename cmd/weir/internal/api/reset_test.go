package api

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// Whoever may reset keys may do so at any port, so each key leaves a line there as well.
func TestAResetLeavesALineForEachKey(t *testing.T) {
	var log strings.Builder
	a := newAPIWith(t, decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Log: slog.New(slog.NewTextHandler(&log, nil))}, usual)
	if w := post(a, "/v1/reset", `{"rule":"unknown","key":"a"}`); w.Code != 400 || log.Len() > 0 {
		t.Errorf("a reset of an unknown rule: got %d and the log %s, want 400 and no line", w.Code, &log)
	}
	if w := post(a, "/v1/reset", `{"requests":[{"key":"a"},{"key":"b"}]}`); w.Code != 200 {
		t.Fatalf("got %d %s, want 200", w.Code, w.Body)
	}
	for _, want := range []string{
		`level=INFO msg=audit who=everyone from=192.0.2.1:1234 what=reset rule=default key=a`,
		`level=INFO msg=audit who=everyone from=192.0.2.1:1234 what=reset rule=default key=b`,
	} {
		if n := strings.Count(log.String(), want+"\n"); n != 1 {
			t.Errorf("%d lines end in %s, want one; the log is\n%s", n, want, &log)
		}
	}
}
