package browsertest

import (
	"path/filepath"
	"testing"
)

// Whoever is banned is in a list, until the ban is lifted from it.
func TestTheLivePageListsWhoIsBannedAndLiftsBans(t *testing.T) {
	t.Parallel()
	d := &liveDaemon{t: t, socket: filepath.Join(t.TempDir(), "admin"), logs: filepath.Join(t.TempDir(), "log")}
	d.start("--rule", "login=fixed window 1/10d and ban 48d after 2/h")
	b := newTab(t)
	b.watch(d.page)
	b.show("keys")
	b.await("document.querySelector('#banned').hidden")
	ask := map[string]string{"rule": "login", "key": "<b>'192.0.2.1'"}
	for range 4 {
		d.take(ask)
	}
	b.await("!document.querySelector('#banned').hidden && document.querySelectorAll('#banned-keys tbody tr').length === 1")
	b.await("/login\\s+4[78]\\s?d/.test(document.querySelector('#banned-keys tbody tr').innerText)")
	b.click("#banned-keys tbody button:not(.key)")
	b.confirm()
	b.await("document.querySelector('#banned').hidden")
	if !d.take(ask) {
		t.Error("after a lift the key is refused")
	}
}
