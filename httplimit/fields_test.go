package httplimit_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
)

var update = flag.Bool("update", false, "write the golden files anew")

var formats = []struct {
	name   string
	format httplimit.Headers
}{{"draft11", httplimit.Draft11}, {"draft07", httplimit.Draft07}, {"draft06", httplimit.Draft06}, {"legacy", httplimit.Legacy}, {"off", httplimit.NoHeaders}}

// The golden files hold every header field of answers to the same requests, one
// file for each format. go test ./httplimit -run Golden -update writes them.
func TestFieldsOfEachFormatAreGolden(t *testing.T) {
	scenes := []struct {
		name  string
		rules []httplimit.Rule
	}{
		{"one bucket", []httplimit.Rule{{Limit: "client=3/m"}}},
		{"one bucket with a burst", []httplimit.Rule{{Limit: "api=token bucket 10/s burst 2"}}},
		{"two limits", []httplimit.Rule{{Limit: "client=2/m and fixed window 1000/d"}}},
		{"a window and a slower limit", []httplimit.Rule{{Limit: "client=fixed window 2/1m and 1000/d"}}},
		{"a sliding window and a slower limit", []httplimit.Rule{{Limit: "client=sliding window 2/1m and 1000/d"}}},
		{"two rules", []httplimit.Rule{{Limit: "client=5/m"}, {Limit: "all=sliding window 2/1h", Key: httplimit.Everyone}}},
		{"slots beside a rate", []httplimit.Rule{{Limit: "work=2/m and concurrency 5"}}},
		{"a name that must be quoted", []httplimit.Rule{{Limit: `say "\é"=1/m`}}},
		{"unlimited", []httplimit.Rule{{Limit: "client=unlimited"}}},
		{"closed", []httplimit.Rule{{Limit: "client=deny all"}}},
	}
	for _, f := range formats {
		var got bytes.Buffer
		for _, scene := range scenes {
			clock := httplimittest.NewClock(start)
			h := wrap(t, httplimit.Options{Engine: clock.Engine(), Headers: f.format, Rules: scene.rules}, ok)
			for i := range 3 {
				w := get(h, alice, "Accept", "text/plain")
				fmt.Fprintf(&got, "%s, request %d: %d\n", scene.name, i+1, w.Code)
				w.Header().Del("Content-Type")
				w.Header().Del("X-Content-Type-Options")
				_ = w.Header().Write(&got)
				got.WriteString("\n")
			}
		}
		golden(t, f.name, bytes.ReplaceAll(got.Bytes(), []byte("\r\n"), []byte("\n")))
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "fields-"+name+".txt")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

// Two middlewares in a row keep each other's fields.
func TestFieldsOfTwoMiddlewares(t *testing.T) {
	tests := []struct {
		format httplimit.Headers
		field  string
		want   string
	}{
		{httplimit.Draft11, "RateLimit", `"client";r=4;t=12 + "key";r=1;t=30`},
		{httplimit.Draft11, "RateLimit-Policy", `"client";q=5;w=60 + "key";q=2;w=60`},
		{httplimit.Draft07, "RateLimit", `limit=2, remaining=1, reset=30`},
		{httplimit.Draft06, "RateLimit-Remaining", "1"},
		{httplimit.Draft06, "RateLimit-Policy", "5;w=60 + 2;w=60"},
		{httplimit.Legacy, "X-RateLimit-Limit", "2"},
	}
	for _, tt := range tests {
		loose := []httplimit.Rule{{Limit: "client=5/m"}}
		tight := []httplimit.Rule{{Limit: "key=2/m", Key: httplimit.Everyone}}
		with := func(rules []httplimit.Rule, next http.Handler) http.Handler {
			return wrap(t, httplimit.Options{Engine: httplimittest.NewClock(start).Engine(), Headers: tt.format, Rules: rules}, next)
		}
		wantHeader(t, "the tight one inside", get(with(loose, with(tight, ok)), alice).Header(), tt.field, tt.want)
		if tt.format != httplimit.Draft11 && tt.field != "RateLimit-Policy" {
			wantHeader(t, "the tight one outside", get(with(tight, with(loose, ok)), alice).Header(), tt.field, tt.want)
		}
	}
}

// The fields describe a refusal even if another middleware has set a smaller remainder.
func TestFieldsOfARefusalReplaceThoseOfAnAdmission(t *testing.T) {
	dear := httplimit.Rule{Limit: "key=5/m", Key: httplimit.Everyone, Cost: func(*http.Request) int64 { return 6 }}
	inner := wrap(t, httplimit.Options{Headers: httplimit.Legacy, Rules: []httplimit.Rule{dear}}, ok)
	outer := wrap(t, httplimit.Options{Headers: httplimit.Legacy, Rules: []httplimit.Rule{{Limit: "client=2/m"}}}, inner)
	w := get(outer, alice)
	wantStatus(t, "a cost of 6", w, 429)
	wantHeader(t, "a cost of 6", w.Header(), "X-RateLimit-Limit", "5")
	wantHeader(t, "a cost of 6", w.Header(), "X-RateLimit-Remaining", "5")
}

func TestFieldsAreNotSpoiltByAHandlerThatAddsToThem(t *testing.T) {
	h, _ := limit(t, httplimit.Rule{Limit: "client=2/m"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("RateLimit-Policy", `"backend";q=9`)
	}))
	w := get(h, alice)
	wantHeader(t, "added policy", w.Header(), "RateLimit-Policy", `"client";q=2;w=60 + "backend";q=9`)
	wantHeader(t, "added policy", w.Header(), "RateLimit", `"client";r=1;t=30`)
}

func TestFieldsOnRefusalsOnly(t *testing.T) {
	h := wrap(t, httplimit.Options{RefusalsOnly: true, Rules: []httplimit.Rule{{Limit: "client=1/h"}}}, ok)
	wantHeader(t, "admitted", get(h, alice).Header(), "RateLimit-Policy", "")
	wantHeader(t, "refused", get(h, alice).Header(), "RateLimit-Policy", `"client";q=1;w=3600`)
}
