package httplimittest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })

func TestSixtyRequestsAMinute(t *testing.T) {
	clock := httplimittest.NewClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	limited, err := httplimit.New(httplimit.Options{
		Engine: clock.Engine(),
		Rules:  []httplimit.Rule{{Limit: "hello=60/m"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := limited(hello)
	r := httptest.NewRequest("GET", "/", nil)

	wait := httplimittest.Admits(t, handler, r, 60)
	clock.Advance(wait)
	httplimittest.Admits(t, handler, r, 1)
	clock.Advance(time.Minute)
	httplimittest.Admits(t, handler, r, 60)
}

func TestSixtyRequestsAMinuteInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited, err := httplimit.PerClient("60/m") // made within the bubble, whose time it then reads
		if err != nil {
			t.Fatal(err)
		}
		handler := limited(hello)
		r := httptest.NewRequest("GET", "/", nil)

		time.Sleep(httplimittest.Admits(t, handler, r, 60))
		httplimittest.Admits(t, handler, r, 1)
	})
}

// failures is a test that records its failures.
type failures struct {
	testing.TB
	failed bool
}

func (f *failures) Helper() {}

func (f *failures) Fatalf(string, ...any) {
	f.failed = true
	panic(f)
}

func TestAdmitsFailsWhenTheLimitIsAnother(t *testing.T) {
	for n, want := range map[int]bool{1: true, 2: false, 3: true} {
		limited, err := httplimit.PerClient("2/h")
		if err != nil {
			t.Fatal(err)
		}
		f := &failures{TB: t}
		func() {
			defer func() { _ = recover() }()
			httplimittest.Admits(f, limited(hello), httptest.NewRequest("GET", "/", nil), n)
		}()
		if f.failed != want {
			t.Errorf("Admits(%d) of a limit of 2 failed: %v, want %v", n, f.failed, want)
		}
	}
}
