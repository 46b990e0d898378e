package admin

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// newDesk returns a function that posts a body to the handler of a daemon with the rule login.
func newDesk(t *testing.T) (post func(path, body string) *httptest.ResponseRecorder, table *override.Table) {
	rule, err := weir.ParseRule("login=fixed window 5/h")
	if err != nil {
		t.Fatal(err)
	}
	table, err = override.OpenFile(filepath.Join(t.TempDir(), "overrides"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := New(Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Overrides: table, Rules: func() ([]*weir.Rule, *rules.Config) { return []*weir.Rule{rule}, nil }, Log: slog.New(slog.DiscardHandler),
		Drain: func() { t.Error("it drains") }, Save: func() error { t.Error("it saves"); return nil }})
	return func(path, body string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodPost, "/v1/admin/"+path, strings.NewReader(body)), httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext((&auth.Port{Open: auth.Anyone("ops", auth.Admin)}).Mark(r.Context())))
		return w
	}, table
}

func TestABodyThatDoesNotSayWhatItSeemsToIsRefused(t *testing.T) {
	post, _ := newDesk(t)
	for _, c := range []struct{ path, body, want string }{
		{"reset", "{\"rule\":\"login\",\"key\":\"bin\xff\"}", "is not JSON at byte 27: invalid UTF-8"},
		{"reset", `{"rule":"login","key":"\ud800"}`, "is not JSON at byte "},
		{"reset", `{"rule":"login","key":"a","key":"b"}`, `has the field \"key\" twice`},
		{"reset", `{"rule":"login","KEY":"a"}`, `has the field \"KEY\", which this request does not know`},
		{"reset", `{"rule":"login","key":"a"}]garbage`, "is not JSON at byte "},
		{"reset", `{"rule":"login","key":"a"}{}`, "is not JSON at byte "},
		{"reset", `{"rule":"login","key":"a","until":"2030-01-01T00:00:00Z"}`, `has the field \"until\"`},
		{"reset", `{"rule":"login","key":"a","units":2}`, `has the field \"units\"`},
		{"reset", `{"rule":"login","key":"a","prefix":true}`, `has the field \"prefix\"`},
		{"reset", `{"rule":"login"}`, `lacks the field \"key\"`},
		{"reset", `{"rule":"login","key":null}`, `has null as \"key\"`},
		{"reset", `{"rule":"login","key":5}`, `has number as \"key\", want a string`},
		{"reset", `[]`, "is not an object"},
		{"reset", `null`, "is not an object"},
		{"reset", ``, "ends before the document does"},
		{"grant", `{"rule":"login","key":"a","units":1.5}`, `has \"1.5\" as \"units\", want a whole number`},
		{"grant", `{"rule":"login","key":"a","units":"2"}`, `as \"units\", want a whole number`},
		{"override", `{"key":"a","limit":"deny all","until":"2030-01-01T00:00:00Z","units":5}`, `has the field \"units\"`},
		{"override", `{"key":"a","limit":"deny all","until":"2030-01-01T00:00:00Z","by":"root"}`, `has the field \"by\"`},
		{"override", `{"key":"a","limit":"deny all","until":"tomorrow"}`, `as \"until\", want a time like 2026-12-01T00:00:00Z`},
		{"remove", `{"key":"a","limit":"deny all"}`, `has the field \"limit\"`},
		{"key", `{"key":"a","rule":"login"}`, `has the field \"rule\"`},
		{"drain", `{"grace":"5s"}`, `has the field \"grace\"`},
		{"snapshot", `{"file":"x"}`, `has the field \"file\"`},
	} {
		if w := post(c.path, c.body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: got %d %s, want 400 with %s", c.path, c.body, w.Code, w.Body, c.want)
		}
	}
}

// A key is blocked, or the answer says that it is not: whatever bytes it has, no other key changes.
func TestARandomKeyIsChangedExactlyOrRefused(t *testing.T) {
	post, table := newDesk(t)
	random, alphabet := rand.New(rand.NewPCG(39, 4)), []string{"a", "\xff", "\xc3", "é", "\ufffd", "\xed\xa0\x80", "𝄞", " ", "\xf0\x9d"}
	refused := 0
	for range 300 {
		key := ""
		for range 1 + random.IntN(4) {
			key += alphabet[random.IntN(len(alphabet))]
		}
		w := post("override", fmt.Sprintf(`{"key":"%s","limit":"deny all","until":%q}`, key, time.Now().Add(time.Hour).Format(time.RFC3339)))
		entries := table.Entries()
		switch {
		case w.Code == http.StatusBadRequest && len(entries) == 0:
			refused++
		case w.Code != http.StatusOK || len(entries) != 1 || entries[0].Key != key:
			t.Fatalf("key %q: got %d %s with the overrides %v", key, w.Code, w.Body, entries)
		default:
			if _, err := table.Remove(t.Context(), "", key, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if refused < 50 || refused > 250 {
		t.Errorf("%d of 300 keys were refused: the test draws too few of a kind", refused)
	}
}
