package api

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

func configured(t *testing.T, text string) *rules.Config {
	t.Helper()
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

const usualFile = `rules:
  - {name: login, match: {path: /login}, key: client, limit: 2/h}
  - {name: all, match: {path: "/*"}, limit: 3/h}
  - {name: office, match: {client: 10.0.0.0/8}, unlimited: true}
  - {name: banned, match: {client: 192.0.2.66}, deny: true}
  - {name: slots, match: {path: /jobs}, limit: concurrency 5}
`

func newConfigured(t *testing.T, text string) *API {
	return newConfiguredWith(t, text, decide.Options{})
}

// newConfiguredWith returns an API of a desk with the rules of a file, and a clock that stands still.
func newConfiguredWith(t *testing.T, text string, o decide.Options) *API {
	o.Config = configured(t, text)
	o.Rules, o.Engine = o.Config.Named(), weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	return newAPIWith(t, o)
}

func TestRulesInFilesDecideByAttributes(t *testing.T) {
	a := newConfigured(t, usualFile)
	for _, c := range []struct{ path, body, want string }{
		{"/v1/peek", `{"attributes":{"path":"/login","client":"192.0.2.1"}}`, `{"allowed":true,"rule":"login","key":"192.0.2.1","limit":2,"remaining":2,`},
		{"/v1/take", `{"attributes":{"path":"/%6cogin/","client":"192.0.2.1"},"cost":2}`, `{"allowed":true,"rule":"login","key":"192.0.2.1","limit":2,"remaining":0,`},
		{"/v1/take", `{"attributes":{"path":"/login","client":"192.0.2.1"}}`, `{"allowed":false,"rule":"login","key":"192.0.2.1",`},
		{"/v1/take", `{"attributes":{"path":"/","client":"192.0.2.1"}}`, `{"allowed":true,"rule":"all","key":"","limit":3,"remaining":0,`},
		{"/v1/take", `{"attributes":{"path":"/","client":"192.0.2.1"}}`, `{"allowed":false,"rule":"all",`},
		{"/v1/take", `{"attributes":{"path":"/","client":"10.1.2.3"}}`, `{"allowed":true,"rule":"office","key":"","limit":0,"remaining":0,"retry_after":0,`},
		{"/v1/take", `{"attributes":{"path":"/","client":"192.0.2.66"}}`, `{"allowed":false,"rule":"banned","key":"","limit":0,"remaining":0,"retry_after":null,`},
		{"/v1/take", `{"attributes":{}}`, `{"allowed":true,"rule":"","key":"",`},
		{"/v1/take", `{"rule":"login","key":"192.0.2.2"}`, `{"allowed":true,"rule":"login",`},
		{"/v1/take", `{"rule":"banned","key":"a"}`, `"detail":"rule is \"banned\", and it refuses every request that matches, and has no limit"`},
		{"/v1/take", `{"attributes":{"path":"/"},"key":"a"}`, `"detail":"attributes excludes requests, rule and key"`},
		{"/v1/take", `{"attributes":{"path":5}}`, `"detail":"attributes has a number as \"path\", not a string","field":"attributes"`},
		{"/v1/take", `{"attributes":{"path":"/","path":"/login"}}`, `"status":400`},
		{"/v1/take", `{"attributes":{"path":"/","header.X-Role":"guest","header.x-role":"root"}}`, `"detail":"attributes have \"header.x-role\" twice; names of header fields differ in more than case","field":"attributes"`},
		{"/v1/peek", `{"attributes":{"path":"/","header.x-role":"guest","HEADER.X-ROLE":"guest"}}`, `"detail":"attributes have \"header.x-role\" twice;`},
		{"/v1/record", `{"attributes":{"path":"/login","client":"192.0.2.7"},"cost":5}`, `{"allowed":false,"rule":"login","key":"192.0.2.7","limit":2,"remaining":0,`},
		{"/v1/peek", `{"attributes":{"path":"/login","client":"192.0.2.7"},"cost":0}`, `"remaining":0,`},
		{"/v1/record", `{"attributes":{"path":"/","client":"10.1.2.3"}}`, `{"allowed":true,"rule":"office",`},
		{"/v1/return", `{"attributes":{"path":"/"}}`, `"status":400`},
		{"/v1/wait", `{"attributes":{"path":"/"}}`, `"status":400`},
	} {
		if got := post(a, c.path, c.body).Body.String(); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: got %s, want %s", c.path, c.body, got, c.want)
		}
	}
	if got := postWith(a, "/v1/take", `{"attributes":{"path":"/"}}`, headerKey, "a").Body.String(); !strings.Contains(got, `"field":"Weir-Key"`) {
		t.Errorf("attributes and a key in the header: got %s, want a refusal of Weir-Key", got)
	}
	if got := post(newFixture(t, usual), "/v1/take", `{"attributes":{"path":"/"}}`).Body.String(); !strings.Contains(got, `"status":400`) {
		t.Errorf("without rules in files: got %s, want an error", got)
	}
}

func TestShadowsAndCandidatesDecideAndChangeNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newConfigured(t, `rules:
  - {name: real, match: any, limit: 100/h, candidate: 1/h}
  - {name: tried, match: any, limit: 1/h, shadow: true}
`)
		for i := range 3 {
			if got := post(a, "/v1/take", `{"attributes":{}}`).Body.String(); !strings.HasPrefix(got, `{"allowed":true,"rule":"real",`) {
				t.Errorf("take %d: got %s", i+1, got)
			}
		}
		synctest.Wait()
		stats := get(a, "/v1/stats").Body.String()
		for _, want := range []string{`"rule":"tried","decisions":3,"refusals":2`, `"rule":"real~candidate","decisions":3,"refusals":2`} {
			if !strings.Contains(stats, want) {
				t.Errorf("the statistics lack %s: %s", want, stats)
			}
		}
	})
}

// Rules replaced under load keep the units that keys have used, and a request finds the rules before or after.
func TestReplacedRulesKeepWhatKeysHaveUsed(t *testing.T) {
	a := newConfigured(t, usualFile)
	larger := configured(t, strings.Replace(usualFile, "2/h", "20/h", 1))
	smaller := configured(t, usualFile)
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			for range 200 {
				got := post(a, "/v1/peek", `{"attributes":{"path":"/login","client":"192.0.2.1"}}`).Body.String()
				if !strings.Contains(got, `"limit":2,`) && !strings.Contains(got, `"rule":"all"`) {
					t.Errorf("got %s", got)
				}
			}
		})
	}
	for i := range 200 {
		config := []*rules.Config{larger, smaller}[i%2]
		a.desk.Use(config.Named(), config)
	}
	callers.Wait()
	post(a, "/v1/take", `{"rule":"login","key":"k","cost":2}`)
	a.desk.Use(larger.Named(), larger)
	if got := post(a, "/v1/peek", `{"rule":"login","key":"k"}`).Body.String(); !strings.Contains(got, `"limit":20,"remaining":18,`) {
		t.Errorf("under the larger limit: got %s, want 18 remaining", got)
	}
	if got := post(a, "/v1/wait", `{"rule":"slots","key":"k"}`).Body.String(); !strings.Contains(got, "holds slots") {
		t.Errorf("a wait for slots: got %s, want an error", got)
	}
}

func TestAFailedReloadIsSeenUntilTheNext(t *testing.T) {
	a := newConfigured(t, usualFile)
	for _, c := range []struct {
		err           error
		ready, counts string
	}{
		{errors.New("a problem"), `{"status":"ready","detail":"the rules files have problems, and the previous rules stay in force; the log says which"}`, `"reloads":{"done":0,"failed":1,"stale":true}`},
		{nil, `{"status":"ready"}`, `"reloads":{"done":1,"failed":1,"stale":false}`},
	} {
		a.Reloaded(c.err)
		if got := get(a, "/readyz"); got.Code != 200 || got.Body.String() != c.ready+"\n" {
			t.Errorf("after %v: readiness is %d %s, want 200 %s", c.err, got.Code, got.Body, c.ready)
		}
		if got := get(a, "/v1/stats").Body.String(); !strings.Contains(got, c.counts) {
			t.Errorf("after %v: got %s, want %s", c.err, got, c.counts)
		}
	}
}
