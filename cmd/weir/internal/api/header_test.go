package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// postWith sends a body with values of one header field.
func postWith(h http.Handler, path, body, name string, values ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header[name] = values
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAKeyInTheHeaderIsTheKeyOfAllRequests(t *testing.T) {
	for _, path := range []string{"take", "peek", "record", "wait", "reserve", "return", "reset"} {
		for header, body := range map[string]string{
			"alice": `{"cost":3}`,
			"é/b c": `{"cost":3,"key":"é/b c"}`,
			"bob":   `{"requests":[{"cost":1},{"key":"bob","cost":2}]}`,
		} {
			f := newFixture(t, usual)
			post(f, "/v1/take", fmt.Sprintf(`{"key":%q,"cost":9}`, header))
			want := map[string]string{"peek": "11", "return": "14", "reset": "20"}[path]
			if want == "" {
				want = "8"
			}
			if w := postWith(f, "/v1/"+path, body, headerKey, header); w.Code != http.StatusOK {
				t.Errorf("%s %s with Weir-Key %q: got %d %s", path, body, header, w.Code, w.Body)
			}
			checkRemaining(t, f.API, "default", header, want)
		}
	}
}

func TestATokenInTheHeaderIsSettledAndRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		token := tokenOf(t, postWith(a, "/v1/reserve", `{"cost":5}`, headerKey, "a"))
		if w := postWith(a, "/v1/renew", `{}`, headerToken, token); w.Code != http.StatusOK {
			t.Errorf("renew: got %d %s", w.Code, w.Body)
		}
		if w := postWith(a, "/v1/settle", `{"cost":2,"token":"`+token+`"}`, headerToken, token); w.Code != http.StatusOK {
			t.Errorf("settle: got %d %s", w.Code, w.Body)
		}
		checkRemaining(t, a, "default", "a", "8")
	}, slowly)
}

func TestAHeaderThatMisleadsIsRefused(t *testing.T) {
	for _, test := range []struct {
		path, body, name string
		values           []string
		field, detail    string
	}{
		{"take", `{"key":"a"}`, headerKey, []string{"b"}, "key", `key is \"a\", and the header field Weir-Key is \"b\"`},
		{"take", `{"key":""}`, headerKey, []string{"b"}, "key", `key is \"\", and the header field Weir-Key is \"b\"`},
		{"wait", `{"requests":[{},{"key":"a"}]}`, headerKey, []string{"b"}, "requests[1].key", `requests[1].key is \"a\", and the header field Weir-Key is \"b\"`},
		{"record", `{}`, headerKey, []string{"b", "b"}, "Weir-Key", "Weir-Key occurs 2 times"},
		{"return", `{"key":""}`, headerKey, []string{""}, "Weir-Key", "Weir-Key is empty; only the body can hold the empty text"},
		{"reserve", `{}`, headerKey, []string{strings.Repeat("k", weir.MaxKey+1)}, "Weir-Key", "Weir-Key has 4097 bytes, more than 4096"},
		{"reset", `{}`, headerKey, []string{"\xff"}, "Weir-Key", "Weir-Key is not UTF-8"},
		{"settle", `{"token":"A"}`, headerToken, []string{"B"}, "token", `token is \"A\", and the header field Weir-Token is \"B\"`},
		{"renew", `{}`, headerToken, []string{strings.Repeat("k", mostToken+1)}, "Weir-Token", "Weir-Token has 8193 bytes, more than 8192"},
	} {
		f := newFixture(t, usual)
		w := postWith(f, "/v1/"+test.path, test.body, test.name, test.values...)
		want := fmt.Sprintf(`"detail":"%s","field":"%s"`, test.detail, test.field)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s with %s %q: got %d %s, want %s", test.path, test.body, test.name, test.values, w.Code, w.Body, want)
		}
		if got := get(f, "/v1/stats").Body.String(); !strings.Contains(got, `"keys":0,`) {
			t.Errorf("%s with %s %q: %s, want no key", test.path, test.name, test.values, got)
		}
	}
}
