package browsertest

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var look = flag.String("look", "", "write screenshots of the pages of some tests in this `FOLDER`")

// see writes a screenshot of the whole page for people who want to see what a test sees.
func (b *tab) see(name string) {
	b.t.Helper()
	if *look == "" {
		return
	}
	width, height := eval[int64](b, "innerWidth"), eval[int64](b, "innerHeight")
	b.do(chromedp.EmulateViewport(width, max(height, eval[int64](b, "Math.min(document.documentElement.scrollHeight, 4500)"))))
	b.picture(filepath.Join(*look, name+".png"))
	b.do(chromedp.EmulateViewport(width, height))
}

// A daemon with --shadow says so on its page. Its rules have a mark until weir ctl enforces them, under their own names, in each list,
// on a phone and on a screen, in light and dark.
func TestThePageMarksShadows(t *testing.T) {
	t.Parallel()
	d := startLive(t, "--shadow")
	b := newTab(t)
	b.watch(d.page)
	b.show("now")
	b.await(shows("#now", "3 of 3 rules are shadows and refuse nothing: --shadow"))
	for range 4 {
		if !d.take(client("/login", "203.0.113.7")) {
			t.Error("a shadow refuses")
		}
	}
	d.ctl("enforce", "api")
	b.await(shows("#now", "2 of 3 rules are shadows and refuse nothing: --shadow"))
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			b.open(d.page+"?"+scheme+fmt.Sprint(width), width, 900, scheme)
			b.await("!document.querySelector('main').hidden")
			b.show("now")
			b.await(shows("#now", "2 of 3 rules are shadows"))
			b.fits(width)
			b.see(fmt.Sprintf("shadows-now-%d-%s", width, scheme))
			b.show("rules")
			b.await(row("#rules-table", "login") + ".includes('shadow')")
			b.await("!" + row("#rules-table", "api") + ".includes('shadow')")
			b.fits(width)
			b.see(fmt.Sprintf("shadows-rules-%d-%s", width, scheme))
			b.show("rules/login")
			b.await(shows("#rule", "shadow"))
			b.fits(width)
			b.see(fmt.Sprintf("shadows-rule-%d-%s", width, scheme))
			b.show("keys")
			b.await(row("#fullest-keys", "203.0.113.7") + ".includes('login')")
			b.fits(width)
			b.see(fmt.Sprintf("shadows-keys-%d-%s", width, scheme))
		}
	}
	d.ctl("enforce", "login")
	b.await(row("#fullest-keys", "203.0.113.7") + " && !" + row("#fullest-keys", "203.0.113.7") + ".includes('shadow')")
}
