package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const customerRules = `attributes: [plan, tokens]
rules:
  - name: api
    match: {path: /v1/*}
    key: header.x-api-key
    limit: token bucket 10/m burst 10
    plans: {by: plan, limits: {free: token bucket 2/h, pro: token bucket 300/m burst 100}}
  - {name: tokens, match: {path: /v1/*}, key: header.x-api-key, limit: fixed window 60000/1h, cost: {from: tokens}}
`

// customersLog has 30 customers, of which those on the free plan come too often.
func customersLog() string {
	var b strings.Builder
	for i := range 2000 {
		plan := []string{"free", "pro", "none"}[i%3]
		fmt.Fprintf(&b, `{"time":"2026-11-2%dT1%d:%02d:%02dZ","ip":"192.0.2.1","path":"/v1/chat","x_api_key":"secret-key-%02d","plan":%q,"tokens":9000}`+"\n", 1+i/1000, i/400%5, i/40%60, i%4, i%30, plan)
	}
	return b.String()
}

// On a phone each row of a table is a list that names its columns, so that none is cut. On a screen no table is wider than the page.
// Each of the worst customers links to its requests over time. Nothing of the page has a key.
func TestAReportOfCustomersCutsNoColumn(t *testing.T) {
	folder := t.TempDir()
	config, log := filepath.Join(folder, "weir.yaml"), filepath.Join(folder, "calls.jsonl")
	for path, text := range map[string]string{config: customerRules, log: customersLog()} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	url, _ := writeReport(t, "replay", "--config", config, "--price", "0.002", log)
	b := newTab(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			b.open(url, width, 900, scheme)
			b.see(fmt.Sprintf("report-customers-%d-%s", width, scheme))
			b.cutsNothing(width)
		}
	}
	b.open(url, 390, 900, "light")
	if wrong := eval[string](b, `[...document.querySelectorAll('#worst ~ div td')].filter(d => d.offsetParent && d.textContent && getComputedStyle(d, '::before').content !== JSON.stringify(d.dataset.label)).map(d => d.textContent).join()`); wrong != "" {
		t.Errorf("on a phone these cells do not name their column: %s", wrong)
	}
	checkOrderOnAPhone(b)
	checkLinkToADay(b)
	links := eval[int](b, `document.querySelectorAll('section:has(#worst) td a').length`)
	if lost := eval[int](b, `[...document.querySelectorAll('section:has(#worst) td a')].filter(a => !document.querySelector('figure' + a.hash)).length`); links < 10 || lost > 0 {
		t.Errorf("%d links of customers, of which %d lead nowhere, want 10 at least", links, lost)
	}
	if text := eval[string](b, "document.documentElement.outerHTML"); strings.Contains(text, "secret-key") || !strings.Contains(text, "On plan free of rule api (token bucket 2/h), ") || !strings.Contains(text, "At 0.002 for each token, ") {
		t.Error("the page has a key, or does not say who on which plan would notice, and what that comes to")
	}
}

// checkOrderOnAPhone sorts the table of the worst customers, whose heads are not shown on a phone, by another column.
func checkOrderOnAPhone(b *tab) {
	b.t.Helper()
	const table = `document.querySelector('section:has(#worst) table')`
	if shown := eval[bool](b, table+`.tHead.offsetParent !== null`); shown {
		b.t.Error("the heads of the table are shown on a phone, which is no list of rows")
	}
	got := eval[string](b, `(() => {
		const table = `+table+`, order = table.closest('.rows').previousElementSibling.querySelector('select')
		const column = Array.from(table.tHead.rows[0].cells).findIndex(h => h.textContent === 'admitted')
		if (!order || !order.offsetParent) return 'nothing to choose'
		order.value = column + ' false'
		order.dispatchEvent(new Event('change'))
		const counts = Array.from(table.tBodies[0].rows, r => parseFloat(r.cells[column].textContent.replace(',', '')))
		return counts.length > 5 && new Set(counts).size > 1 && counts.every((n, i) => i === 0 || counts[i - 1] <= n) ? 'sorted' : counts.join()
	})()`)
	if got != "sorted" {
		b.t.Errorf("the least admitted customers first: got %s", got)
	}
}

// checkLinkToADay follows the link of a customer, which shows the day on which most requests were refused.
func checkLinkToADay(b *tab) {
	b.t.Helper()
	got := eval[string](b, `(async () => {
		const a = document.querySelector('section:has(#worst) td a')
		const plot = document.querySelector('figure' + a.hash + ' .plot')
		const before = plot.dataset.shown
		a.click()
		await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
		const [from, to] = plot.dataset.shown.split(' ').map(Number)
		return (before !== plot.dataset.shown && to - from <= 86400) + ' ' + plot.parentElement.querySelector('.readout').textContent + ' ' + plot.parentElement.querySelector('figcaption').textContent
	})()`)
	if !strings.HasPrefix(got, "true 2") || !strings.Contains(got, "Nov. Escape, or a double click, shows all.") || !strings.Contains(got, ", most on 2") {
		b.t.Errorf("the link of a customer shows %s, want a day of November", got)
	}
}

// cutsNothing checks that no table is wider than its place, and the page no wider than the window.
func (b *tab) cutsNothing(width int64) {
	b.t.Helper()
	if cut := eval[string](b, `[...document.querySelectorAll('.rows')].filter(r => r.scrollWidth > r.clientWidth + 1).map(r => r.innerText.slice(0, 80)).join('\n')`); cut != "" || eval[int64](b, "document.documentElement.scrollWidth") > width {
		b.t.Errorf("at %d pixels these tables are cut, or the page is wider: %s", width, cut)
	}
}

// Reports of limits, suggestions and simulations cut no column either, and sort on a phone.
func TestNoReportCutsAColumn(t *testing.T) {
	b := newTab(t)
	for name, args := range map[string][]string{
		"limits":   {"replay", "--limit", "token bucket 1/m burst 75", "--limit", "sliding window 60/1m", realLog},
		"suggest":  {"replay", "--suggest", "refuse 0.1% of clients", realLog},
		"ban":      {"replay", "--key", "ip,path", "--limit", "fixed window 2/1m and ban 10m after 5/5m", realLog},
		"simulate": {"simulate", "--traffic", "constant 20/s", "--for", "10s", "--limit", "token bucket 1/s burst 10", "--limit", "sliding log 10/s"},
	} {
		url, _ := writeReport(t, args...)
		for _, width := range []int64{390, 1280} {
			b.open(url, width, 900, map[int64]string{390: "light", 1280: "dark"}[width])
			b.see(fmt.Sprintf("report-%s-%d", name, width))
			b.cutsNothing(width)
			if without := eval[int](b, `[...document.querySelectorAll('table[data-what]')].filter(t => t.tBodies[0].rows.length > 1 && t.offsetParent && !!t.closest('.rows').previousElementSibling.querySelector('select').offsetParent !== (innerWidth < 480)).length`); without > 0 {
				t.Errorf("%s: at %d pixels %d tables can be sorted by a choice where heads are shown, or cannot where they are not", name, width, without)
			}
		}
	}
}
