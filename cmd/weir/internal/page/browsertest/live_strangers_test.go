package browsertest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// hostileParts are what keys are made of that want to be more than text, to a browser or to a shell.
var hostileParts = []string{"<script>stolen()</script>", "<img src=x onerror=stolen()>", `"'><svg onload=stolen()>`, "javascript:stolen()", "</td></table>", "{{stolen()}}", "__proto__", "constructor",
	"\u202e", "\u2028", "\x00", "\x1b[2J", "\t", "\u200b", "\U000e0041", "'; stolen; '", "`stolen`", "$(stolen)", `\`, "!!", "-", "--rule", "=", " ", "é", "日本", "🌊", "*", "~", "a", "7"}

// hostileKeys returns keys, the same ones at each run.
func hostileKeys(n int) []string {
	random := rand.New(rand.NewPCG(44, 1))
	keys := append([]string{}, hostileParts...)
	for len(keys) < n {
		key := ""
		for range 1 + random.IntN(5) {
			key += hostileParts[random.IntN(len(hostileParts))]
		}
		keys = append(keys, key)
	}
	return keys[:n]
}

// Keys are text, whatever they are made of: in lists, in headings, in the dialog, and in the line that a shell gets.
func TestHostileKeysAreText(t *testing.T) {
	t.Parallel()
	d := &liveDaemon{t: t, socket: filepath.Join(t.TempDir(), "admin"), logs: filepath.Join(t.TempDir(), "log")}
	d.start("--rule", "default=1000/s", "--rule", "__proto__=1/h")
	b := newTab(t)
	b.watch(d.page)
	b.show("keys")
	keys := hostileKeys(len(hostileParts) + 30)
	if testing.Short() {
		keys = keys[:len(hostileParts)]
	}
	for _, key := range keys {
		for range 3 {
			d.take(map[string]string{"rule": "__proto__", "key": key})
		}
	}
	b.await("document.querySelectorAll('#refused-keys tbody tr').length === 20")
	for i, key := range keys {
		if strings.Contains(key, "\x00") { // no argument of a command can have it
			continue
		}
		b.lookUpPasted(key)
		if i%6 != 0 {
			continue
		}
		b.click("#override-form > button")
		line := b.confirm()
		b.await("document.querySelectorAll('#overrides tbody button:not(.key)').length === 1")
		if got := blocked(t, d); got != key {
			t.Errorf("the button blocks %q, want %q", got, key)
		}
		b.click("#overrides tbody button:not(.key)")
		b.confirm()
		b.await("document.querySelectorAll('#overrides tbody button:not(.key)').length === 0")
		run(t, line)
		if got := blocked(t, d); got != key {
			t.Errorf("the line %s blocks %q, want %q", line, got, key)
		}
		d.ctl("clear", "--", key)
		b.await("document.querySelectorAll('#overrides tbody button:not(.key)').length === 0")
	}
	for _, panel := range []string{"now", "rules", "rules/__proto__", "audit"} {
		b.show(panel)
	}
	if n := eval[int](b, "document.querySelectorAll('main script, main img, main svg[onload], main iframe').length"); n != 0 {
		t.Errorf("keys have become %d elements", n)
	}
}

// lookUpPasted looks a key up, and checks that the page shows it with the characters that nobody sees as their numbers.
func (b *tab) lookUpPasted(key string) {
	b.t.Helper()
	quoted, _ := json.Marshal(key)
	eval[*string](b, fmt.Sprintf("document.querySelector('#key-input').value = %s, document.querySelector('#key-form').requestSubmit(), null", quoted))
	single := strings.NewReplacer("\n", "", "\r", "").Replace(key) // a field has one line
	want := ""
	for _, r := range single {
		if strings.ContainsRune("\u202e\u2028\x1b\t\u200b\U000e0041", r) {
			want += fmt.Sprintf("⟨%04X⟩", r)
		} else {
			want += string(r)
		}
	}
	shown, _ := json.Marshal(want)
	b.await(fmt.Sprintf("document.querySelector('#key h2')?.textContent === %s && document.querySelector('#override-form')", shown))
}

// blocked returns the only key with an override.
func blocked(t *testing.T, d *liveDaemon) string {
	t.Helper()
	var all struct{ Overrides []struct{ Key string } }
	if err := json.Unmarshal([]byte(d.ctl("overrides", "--format", "json")), &all); err != nil || len(all.Overrides) != 1 {
		t.Fatalf("the overrides are %v (%v), want one", all, err)
	}
	return all.Overrides[0].Key
}
