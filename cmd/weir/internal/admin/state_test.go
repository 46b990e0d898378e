package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
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

// counter is a daemon with rules in a file, its log, and why its engine is away.
type counter struct {
	t       *testing.T
	engine  weir.Engine
	config  *rules.Config
	log     bytes.Buffer
	failing bool   // each answer is one of the policy
	away    string // why the engine does not decide
	local   uint64 // answers of the policy
	http.Handler
}

func newCounter(t *testing.T, file string) *counter {
	c := &counter{t: t}
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	table, err := override.OpenFile(filepath.Join(t.TempDir(), "overrides"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.config, c.engine = config, table.Around(weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		if c.failing {
			c.local++
		}
		return next(ctx, call)
	}))
	c.Handler = New(Options{Engine: c.engine, Overrides: table, Rules: func() ([]*weir.Rule, *rules.Config) { return config.Named(), config },
		Log: slog.New(slog.NewTextHandler(&c.log, nil)), Policy: func() (uint64, string) { return c.local, c.away }})
	return c
}

// take takes units for a request with attributes.
func (c *counter) take(attributes rules.Attributes, units int64) weir.Decision {
	c.t.Helper()
	var o rules.Outcome
	c.config.Decide(attributes, units, &o)
	d, err := c.engine.Take(c.t.Context(), o.Requests...)
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// ask posts a body, and wants texts in the answer.
func (c *counter) ask(path, body string, want ...string) {
	c.t.Helper()
	r, w := httptest.NewRequest(http.MethodPost, "/v1/admin/"+path, strings.NewReader(body)), httptest.NewRecorder()
	c.ServeHTTP(w, r.WithContext((&auth.Port{Open: auth.Anyone("ops", auth.Admin)}).Mark(r.Context())))
	var answer any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		c.t.Fatalf("%s %s: got %d %s", path, body, w.Code, w.Body)
	}
	for _, text := range want {
		if !strings.Contains(w.Body.String(), text) {
			c.t.Errorf("%s %s: got %s, want %s", path, body, w.Body, text)
		}
	}
}

const keyed = `
rules:
  - {name: n, match: any, key: client, limit: fixed window 10/h, keys: {192.0.2.1: fixed window 500/h}}
  - {name: other, match: any, key: client, limit: 10/h, keys: {192.0.2.1: fixed window 500/d}}
`

func TestAKeyWithALimitOfItsOwnIsShownByIt(t *testing.T) {
	c := newCounter(t, keyed)
	c.take(rules.Attributes{"client": "192.0.2.1"}, 40)
	key := `{"rule":"n","key":"192.0.2.1"`
	c.ask("peek", key+`}`, `"limit":500,"remaining":460`, `"text":"fixed window 500/h"`, "keys gives it the limit fixed window 500/h; a request that names rule and key has fixed window 10/h")
	c.ask("key", `{"key":"192.0.2.1"}`, `"rule":"n","text":"fixed window 500/h","limit":500,"remaining":460`, `"rule":"other","text":"fixed window 500/d","limit":500,"remaining":460`)
	c.ask("grant", key+`,"units":30}`, `"before":{"limit":500,"remaining":460},"after":{"limit":500,"remaining":490}`)
	if want := `before="{\"limit\":500,\"remaining\":460}" after="{\"limit\":500,\"remaining\":490}"`; !strings.Contains(c.log.String(), want) {
		t.Errorf("got the log %s, want %s", &c.log, want)
	}
	c.ask("peek", `{"rule":"n","key":"192.0.2.2"}`, `"allowed":true,"key":"192.0.2.2","rule":"n","text":"fixed window 10/h","limit":10,"remaining":10`)
}

// The state of a limit with another algorithm or window is another one.
func TestAResetClearsAKeyUnderEachLimitThatMayHaveDecided(t *testing.T) {
	c := newCounter(t, keyed+"  - {name: planned, match: any, key: client, limit: 10/h, plans: {by: header.plan, limits: {gold: fixed window 100/d, silver: 50/h}}}\n")
	gold := rules.Attributes{"client": "192.0.2.1", "header.plan": "gold"}
	c.take(gold, 7)
	for _, rule := range []string{"n", "other", "planned"} {
		c.ask("reset", `{"rule":"`+rule+`","key":"192.0.2.1"}`)
	}
	if d := c.take(gold, 100); !d.Allowed {
		t.Errorf("after the resets 100 of 100 are refused by %s: %+v", d.Rule, d)
	}
	c.ask("peek", `{"rule":"planned","key":"192.0.2.1"}`, "a plan may give it another limit than token bucket 10/h")
	c.ask("key", `{"key":"192.0.2.1"}`, `"text":"token bucket 10/h, unless a plan gives another"`)
}

func TestAnOverrideIsShownAndClearedInPlaceOfTheFiles(t *testing.T) {
	c := newCounter(t, keyed)
	c.ask("override", `{"rule":"n","key":"192.0.2.1","limit":"7/m","until":"`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"}`)
	c.take(rules.Attributes{"client": "192.0.2.1"}, 3)
	c.ask("peek", `{"rule":"n","key":"192.0.2.1"}`, `"text":"token bucket 7/m","limit":7,"remaining":4,`)
	c.ask("reset", `{"rule":"n","key":"192.0.2.1"}`, `"after":{"limit":7,"remaining":7}}`)
}

// While the engine is away the policy answers, and its figures are not those of the key.
func TestNoFigureIsShownWhileTheEngineIsAway(t *testing.T) {
	c := newCounter(t, keyed)
	c.away = "the engine has failed for 3s: connection refused"
	warning := `the used units of the key are unknown, because the policy of this daemon answers: the engine has failed for 3s`
	c.ask("grant", `{"rule":"n","key":"a","units":1}`, `"before":"unknown","after":"unknown"`, warning)
	c.ask("reset", `{"rule":"n","key":"a"}`, `"before":"unknown","after":"unknown"`, warning)
	c.ask("peek", `{"rule":"n","key":"a"}`, warning)
	c.ask("key", `{"key":"192.0.2.9"}`, warning)
	c.away, c.failing = "", true // it has not gone for good, or so it seems
	c.ask("grant", `{"rule":"n","key":"a","units":1}`, `"before":"unknown","after":"unknown"`, "the engine has just failed")
	c.ask("peek", `{"rule":"n","key":"a"}`, "the engine has just failed")
	if text := c.log.String(); strings.Count(text, `before="\"unknown\"" after="\"unknown\""`) != 3 {
		t.Errorf("got the log %s, want three lines of what is unknown", text)
	}
}
