package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/internal/redistest"
)

const tokenRules = `rules:
  - {name: api, match: {path: "/*"}, key: header.x-customer, limit: quota 100/month, plans: {by: header.x-plan, limits: {pro: quota 5000/month}}}
  - {name: other, match: {path: "/*"}, key: header.x-customer, limit: quota 7/month}
`

// asker asks daemons with a token.
type tokenAsker struct {
	t     *testing.T
	token string
}

func (a tokenAsker) post(url, path, body string) (status int, answer string) {
	a.t.Helper()
	r, err := http.NewRequest(http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// forKey returns the token of a key.
func (a tokenAsker) forKey(url, body string) tokenAsker {
	a.t.Helper()
	status, answer := a.post(url, "/v1/token", body)
	var got struct {
		Token  string
		EndsAt time.Time `json:"ends_at"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || status != http.StatusOK || !got.EndsAt.After(time.Now()) || got.EndsAt.After(time.Now().Add(time.Hour+time.Second)) {
		a.t.Fatalf("%s: got %d %s, %v", body, status, answer, err)
	}
	return tokenAsker{a.t, got.Token}
}

func (a tokenAsker) want(url, path, body string, status int, part string) {
	a.t.Helper()
	if got, answer := a.post(url, path, body); got != status || !strings.Contains(answer, part) {
		a.t.Errorf("%s %s: got %d %s, want %d with %s", path, body, got, answer, status, part)
	}
}

// newToken returns a token and its line of a file.
func newToken(scopes string) (token, line string) {
	token, form := auth.NewToken()
	return token, "caller " + form + " " + scopes + "\n"
}

// A token of a key shows this key, on every daemon of the engine, and nothing else until it ends.
func TestATokenOfAKeyShowsThatKeyAlone(t *testing.T) {
	redis, folder := redistest.Start(t), t.TempDir()
	rules, tokens := filepath.Join(folder, "rules.yaml"), filepath.Join(folder, "tokens")
	reads, one := newToken("read:api")
	takes, two := newToken("take")
	for path, text := range map[string]string{rules: tokenRules, tokens: one + two} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resp := loopback(t)
	flags := []string{"--http", "127.0.0.1:0", "--config", rules, "--tokens", tokens, "--engine", "redis://" + redis.Addr, "--deadline", "5s"}
	url, second := startDaemon(t, append(flags, "--resp", resp)...), startDaemon(t, flags...)
	backend, shop := tokenAsker{t, reads}, tokenAsker{t, takes}
	shop.want(url, "/v1/take", `{"rule":"api","key":"alice","cost":30}`, 200, `"allowed":true`)
	alice := backend.forKey(url, `{"rule":"api","key":"alice"}`)
	for _, daemon := range []string{url, second} {
		alice.want(daemon, "/v1/peek", `{"rule":"api","key":"alice","cost":0}`, 200, `"key":"alice","limit":100,"remaining":70,`)
		alice.want(daemon, "/v1/peek", `{"decisions":[{"rule":"api","key":"alice"},{"rule":"api","key":"bob"}]}`, 403, "this token lets its holder peek at one key")
		for _, body := range []string{`{"rule":"api","key":"bob"}`, `{"rule":"other","key":"alice"}`, `{"requests":[{"rule":"api","key":"alice"},{"rule":"api","key":"bob"}]}`,
			`{"attributes":{"path":"/","header.x-customer":"bob"}}`, `{"attributes":{}}`} {
			alice.want(daemon, "/v1/peek", body, 403, "this token lets its holder peek at one key")
		}
		for _, path := range []string{"/v1/take", "/v1/record", "/v1/wait", "/v1/reserve", "/v1/return", "/v1/reset"} {
			alice.want(daemon, path, `{"rule":"api","key":"alice"}`, 403, "this token lets its holder peek at one key")
		}
		alice.want(daemon, "/v1/token", `{"rule":"api","key":"alice"}`, 403, "this token lets its holder peek at one key")
		alice.want(daemon, "/v1/check?rule=api&key=alice", "", 403, "this token lets its holder peek at one key")
	}
	backend.forKey(url, `{"rule":"api","key":"alice","plan":"pro","lasts":3600}`).want(second, "/v1/peek", `{"rule":"api","key":"alice"}`, 200, `"limit":5000,"remaining":4970,`)
	backend.want(url, "/v1/peek", `{"rule":"api","key":"bob"}`, 200, `"allowed":true`)
	backend.want(url, "/v1/take", `{"rule":"api","key":"bob"}`, 403, `this needs the scope take, and the caller has read:api`)
	backend.want(url, "/v1/peek", `{"rule":"other","key":"bob"}`, 403, `this needs the scope take:other or read:other, and the caller has read:api`)
	for body, part := range map[string]string{`{"rule":"other","key":"a"}`: "read:other", `{"rule":"none","key":"a"}`: "no rule has that name", `{"rule":"api"}`: "key is missing",
		`{"rule":"api","key":"a","lasts":3601}`: "lasts is not within 1 and 3600 seconds", `{"rule":"api","key":"a","lasts":0}`: "lasts is not within", `{"rule":"api","key":"a","plan":"x"}`: "no such plan",
		`{"rule":"api","key":"` + strings.Repeat("k", 513) + `"}`: "more than the 512 of a token"} {
		if status, answer := backend.post(url, "/v1/token", body); status < 400 || status > 403 || !strings.Contains(answer, part) {
			t.Errorf("%s: got %d %s, want a refusal with %s", body, status, answer, part)
		}
	}
	shop.want(url, "/v1/token", `{"rule":"api","key":"alice"}`, 403, `this needs the scope read, and the caller has take`)
	d := &waysDaemon{t: t, resp: resp}
	for command, want := range map[string]string{"WEIR.PEEK api alice 0": "*", "WEIR.PEEK api bob": "-NOPERM", "WEIR.TAKE api alice": "-NOPERM"} {
		lines, err := d.lines("AUTH " + alice.token + "\r\n" + command)
		if err != nil || len(lines) < 2 || lines[0] != "+OK" || !strings.HasPrefix(lines[1], want) {
			t.Errorf("%s: got %q, %v, want %s", command, lines, err, want)
		}
	}
	for name, forged := range map[string]string{"cut": alice.token[:len(alice.token)-1], "changed": alice.token[:20] + "A" + alice.token[21:], "empty": "weir_key_",
		"another secret": (&auth.KeyToken{Rule: "api", Key: []byte("alice"), Ends: time.Now().Add(time.Hour).UnixMilli()}).Text([]byte("a guess"))} {
		if status, answer := (tokenAsker{t, forged}).post(url, "/v1/peek", `{"rule":"api","key":"alice"}`); status != 401 && forged != alice.token {
			t.Errorf("a %s token: got %d %s, want 401", name, status, answer)
		}
	}
	short := backend.forKey(url, `{"rule":"api","key":"alice","lasts":1}`)
	status, answer := 200, ""
	for end := time.Now().Add(20 * time.Second); status == 200 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		status, answer = short.post(second, "/v1/peek", `{"rule":"api","key":"alice"}`)
	}
	if status != 401 || !strings.Contains(answer, "the token of a key ended at") {
		t.Errorf("after its end: got %d %s, want 401", status, answer)
	}
	if err := os.WriteFile(rules, []byte(strings.ReplaceAll(tokenRules, "name: api", "name: renamed")), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); status != 400 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		status, answer = alice.post(url, "/v1/peek", `{"rule":"api","key":"alice"}`)
	}
	if status != 400 || !strings.Contains(answer, "no rule has that name") {
		t.Errorf("under a renamed rule: got %d %s, want 400", status, answer)
	}
	alice.want(url, "/v1/peek", `{"rule":"renamed","key":"alice"}`, 403, "this token lets its holder peek at one key")
}

// A daemon that asks nobody who he is gives no tokens, and takes one for nothing more than its key.
func TestATokenOfAKeyIsNoKeyToAnOpenDaemon(t *testing.T) {
	url := startDaemon(t, "--http", "127.0.0.1:0", "--rule", "api=quota 9/month")
	(tokenAsker{t, ""}).want(url, "/v1/token", `{"rule":"api","key":"alice"}`, 403, "this needs the scope read")
	forged := (&auth.KeyToken{Rule: "api", Key: []byte("alice"), Ends: time.Now().Add(time.Hour).UnixMilli()}).Text([]byte("a guess"))
	(tokenAsker{t, forged}).want(url, "/v1/take", fmt.Sprintf(`{"rule":"api","key":%q}`, "bob"), 401, "")
}
