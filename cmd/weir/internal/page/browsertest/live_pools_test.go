package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"
)

const pooledRules = `
rules:
  - {name: floor, match: {path: /api/*}, key: header.tenant, limit: 100/m, otherwise: pool}
  - {name: pool, match: otherwise, limit: 1000/m}
`

// The explanation of a request names the pool that is asked where its rule refuses, and how much is left of it.
func TestTheLivePageExplainsThePoolBehindARule(t *testing.T) {
	t.Parallel()
	d := startLive(t)
	d.write(pooledRules)
	b := newTab(t)
	b.watch(d.page)
	b.show("rules")
	b.await(shows("#rules-table", "pool"))
	b.show("rules/floor")
	b.await(shows("#rule", "Explain a request"))
	b.do(chromedp.SendKeys("#rule textarea", "path=/api/a\nheader.tenant=acme"))
	b.click("#rule form button")
	b.await(text("#rule") + ".match(/floor counts the key acme by .*100\\/m, 100 remain.*If floor refuses: pool counts the key .*1000\\/m, 1,000 remain/s)")
}
