package admin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/door"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// A change leaves a line also when the engine fails before its outcome is known. One that was certainly not made leaves none.
func TestAChangeOfUnknownOutcomeIsInTheLog(t *testing.T) {
	rule, err := weir.ParseRule("login=5/m")
	if err != nil {
		t.Fatal(err)
	}
	fails := map[weir.Op]error{}
	memory, peeks := weir.NewMemory(weir.MemoryOptions{}), 0
	engine := weir.Wrap(memory, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		if call.Op == weir.OpPeek {
			if peeks++; peeks%2 == 1 { // the one before the change
				return next(ctx, call)
			}
		}
		if err := fails[call.Op]; err != nil {
			return weir.Answer{}, err
		}
		return next(ctx, call)
	})
	gone := errors.New("connection lost")
	for _, c := range []struct {
		op   weir.Op
		err  error
		want string
	}{
		{weir.OpPeek, gone, `after="\"unknown\""`},
		{weir.OpReset, gone, `after="\"unknown\""`},
		{weir.OpReset, weir.ErrRequest, ""},
	} {
		peeks, fails = 0, map[weir.Op]error{c.op: c.err}
		var log bytes.Buffer
		h := New(Options{Engine: engine, Rules: func() ([]*weir.Rule, *rules.Config) { return []*weir.Rule{rule}, nil }, Log: slog.New(slog.NewTextHandler(&log, nil))})
		r := httptest.NewRequest(http.MethodPost, "/v1/admin/reset", strings.NewReader(`{"rule":"login","key":"alice"}`))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext((&door.Port{Open: door.Anyone("ops", door.Admin)}).Mark(r.Context())))
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(log.String(), c.want) || (c.want == "") != (log.Len() == 0) {
			t.Errorf("%v fails with %v: got %d %s and the log %q, want %q", c.op, c.err, w.Code, w.Body, &log, c.want)
		}
	}
}
