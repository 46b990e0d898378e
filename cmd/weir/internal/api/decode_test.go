package api

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// FuzzDecode compares the decoder with the standard library's. A body that it accepts is JSON with the same meaning,
// within the bounds. A body that it refuses gets a problem that names a place.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"key":"alice"}`, `{"rule":"other","key":"","cost":-5}`, `{"requests":[{"key":"a"},{"key":"b","cost":2}]}`,
		`{"requests":[]}`, `{"key":"\ud83d\ude00\u0000"}`, "{\"key\":\"\xff\"}", `{"key":"a","cost":1e9}`, `{"key":"a"}{}`, `[`, `{"\u006bey":"a"}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	force := newAPIWith(f, decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{})}, usual, "other=fixed window 5/1m").desk.InForce()
	f.Fuzz(func(t *testing.T, body []byte, negative bool) {
		c := newCall()
		defer c.free()
		c.body.Write(body)
		if p := c.decode(force, form{negative: negative}); p != nil {
			if p.status != 400 || p.field == "" || p.detail == "" || !utf8.ValidString(p.detail) {
				t.Fatalf("%q: problem %+v", body, p)
			}
			return
		}
		if !utf8.Valid(body) {
			t.Fatalf("%q: accepted, but is not UTF-8", body)
		}
		want := expected(t, body)
		if len(want) != len(c.requests) {
			t.Fatalf("%q: got %d requests, want %d", body, len(c.requests), len(want))
		}
		for i, got := range c.requests {
			if got.Rule.Name() != want[i].Rule || got.Key != want[i].Key || got.Cost != want[i].Cost {
				t.Fatalf("%q: request %d is %s %q %d, want %+v", body, i, got.Rule.Name(), got.Key, got.Cost, want[i])
			}
			if got.Cost < 0 && !negative || len(got.Key) > weir.MaxKey {
				t.Fatalf("%q: request %d is out of bounds: %+v", body, i, got)
			}
		}
	})
}

type plainItem struct {
	Rule, Key string
	Cost      int64
}

func (p *plainItem) UnmarshalJSON(b []byte) error {
	type bare plainItem
	p.Rule, p.Cost = defaultRule, 1
	return json.Unmarshal(b, (*bare)(p))
}

// expected decodes an accepted body with the standard library.
func expected(t *testing.T, body []byte) []plainItem {
	var several struct{ Requests []plainItem }
	if err := json.Unmarshal(body, &several); err != nil {
		t.Fatalf("%q: accepted, but %v", body, err)
	}
	if len(several.Requests) > 0 {
		return several.Requests
	}
	one := make([]plainItem, 1)
	if err := json.Unmarshal(body, &one[0]); err != nil {
		t.Fatalf("%q: accepted, but %v", body, err)
	}
	return one
}
