package redislimit

import (
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// oddTexts are texts that a careless name would confuse, or that a shell, xargs or Redis would not take as they are.
var oddTexts = []string{
	"", "a", "a b", "a\tb", `"`, "'", `\`, "line\nbreak", "\x00", "a\x00b", "%", "%00", "%25", "{", "}", "{0}", "}{", ":", "a:b", "::", "grün", "\xff", "日本",
	"*", "?", "[a]", "$(x)", "`x`", ";", "&", "|", "-n", "2001:db8::1", "me@example.org", "/v1/take", strings.Repeat("\x00", 4096), strings.Repeat("k", 4096),
}

// keyPart matches a part of a key: nothing in it needs quotes anywhere, or ends the part.
var keyPart = regexp.MustCompile(`^[A-Za-z0-9._~/@+=,%-]*$`)

// Each rule, limit and key has a name of its own, which shows on a terminal as it is, on the lane of its key.
func TestKeysArePrintableAndNeverCollide(t *testing.T) {
	k, names := stored.NewKeys("weir", 16), map[string]string{}
	for _, rule := range oddTexts {
		if rule == "" {
			continue
		}
		for _, state := range []string{"", "n", "qn", "s1njchs0"} {
			for _, key := range oddTexts {
				name, what := k.Name(3, string(stored.AppendEscaped(nil, rule))+":"+state+":", key), rule+"\x00"+state+"\x00"+key
				fields := strings.Split(name, ":")
				if len(fields) != 5 || fields[1] != "{3}" || !keyPart.MatchString(fields[2]) || fields[3] != state || !keyPart.MatchString(fields[4]) {
					t.Errorf("%q is stored under %q, want weir:{3}:RULE:%s:KEY", what, name, state)
				}
				if other, taken := names[name]; taken {
					t.Errorf("%q and %q are both stored under %q", other, what, name)
				}
				names[name] = what
			}
		}
	}
	for _, name := range []string{k.Server(3), k.Probe(3), k.Identity(3, "4f", "a:b")} {
		if other, taken := names[name]; taken {
			t.Errorf("%q, which is no state, is the name of %q", name, other)
		}
	}
}

// FuzzEscaping checks that an escaped text is printable, and that it is the escape of no other text.
func FuzzEscaping(f *testing.F) {
	for _, text := range oddTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped := string(stored.AppendEscaped(nil, text))
		if back, err := url.PathUnescape(escaped); err != nil || back != text || !keyPart.MatchString(escaped) {
			t.Errorf("%q is escaped as %q, which is %q again (%v)", text, escaped, back, err)
		}
	})
}

// A plain key is written without a copy of its own.
func TestNamesOfPlainKeysAreMadeOnce(t *testing.T) {
	k, space := stored.NewKeys("weir", 128), make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() { space = k.Append(space[:0], 7, "login::", "user-4711@example.org") }); n != 0 {
		t.Errorf("it took %v allocations, want none", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = k.Name(7, "login::", "user-4711@example.org") }); n != 1 {
		t.Errorf("a name took %v allocations, want that of its bytes", n)
	}
}

// The commands of docs/reference/redis.md list and delete what is stored of one key, whatever its bytes, and nothing else.
func TestTheDocumentedCommandsDeleteAKey(t *testing.T) {
	testprocess.Require(t, "redis-cli", "redis-tools")
	text, err := os.ReadFile("../docs/reference/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(string(text), "```\nredis-cli --scan")
	commands, _, _ = strings.Cut("redis-cli --scan"+commands, "```")
	if !strings.Contains(commands, "xargs") {
		t.Fatalf("docs/reference/redis.md shows the commands %q, want some that scan and delete", commands)
	}
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	for _, key := range oddTexts {
		deletes(t, commands, server, engine, key)
		server.Do("FLUSHALL")
	}
}

// deletes runs the documented commands, which delete key "alice" of rule "login", for another key.
func deletes(t *testing.T, commands string, server *redistest.Server, engine *Engine, key string) {
	t.Helper()
	login, other := mustRule(t, "login=token bucket 5/h and sliding log 9/h"), mustRule(t, "log=token bucket 5/h")
	before, behind := "x"+key[min(len(key), 1):], key[:max(len(key), 1)-1]+"y" // other keys of nearly the same bytes
	for _, q := range []weir.Request{login.For(key, 5), login.For(before, 5), login.For(behind, 5), other.For(key, 5)} {
		if d, err := engine.Take(t.Context(), q); err != nil || !d.Allowed {
			t.Fatalf("Take for %.50q: %+v, %v", q.Key, d, err)
		}
	}
	here := strings.NewReplacer("redis-cli", "redis-cli -p "+strings.TrimPrefix(server.Addr, "127.0.0.1:"), "alice", string(stored.AppendEscaped(nil, key))).Replace(commands)
	if out, err := exec.Command("sh", "-c", here).CombinedOutput(); err != nil {
		t.Fatalf("%.200s: %v: %s", here, err, out)
	}
	for q, want := range map[weir.Request]int64{login.For(key, 0): 5, login.For(before, 0): 0, login.For(behind, 0): 0, other.For(key, 0): 0} {
		if d, err := engine.Peek(t.Context(), q); err != nil || d.Remaining != want {
			t.Errorf("after %.200s: %.50q of %s has %d units (%v), want %d", here, q.Key, q.Rule.Name(), d.Remaining, err, want)
		}
	}
}
