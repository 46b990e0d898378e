package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

const fullestRules = `
rules:
  - {name: minute, match: {path: /api/*}, key: client, limit: fixed window 2000/d}
  - {name: month, match: {path: /api/*}, key: header.tenant, limit: quota 10000/month}
`

// A rule that matches every request and has not bound or refused anything shows its takes and its fullest keys, and so does the
// list of all rules. On a phone nothing is wider than the page.
func TestThePageShowsRulesThatDoNotBind(t *testing.T) {
	t.Parallel()
	d := startLive(t)
	d.write(fullestRules)
	b := newTab(t)
	b.watch(d.page)
	b.show("rules")
	b.await(shows("#rules-table", "month"))
	for i := range 600 {
		tenant := []string{"acme", "acme", "globex"}[i%3]
		body, _ := json.Marshal(map[string]any{"attributes": map[string]string{"path": "/api/a", "client": fmt.Sprint("203.0.113.", i%2), "header.tenant": tenant}})
		response, err := http.Post(d.traffic+"/v1/take", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	b.await(row("#rules-table", "month") + ".includes('600')")
	b.await(row("#rules-table", "month") + ".includes('%')")
	b.await(row("#rules-table", "minute") + ".includes('600')")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			b.open(d.page+"?"+scheme+fmt.Sprint(width), width, 900, scheme)
			b.await("!document.querySelector('main').hidden")
			b.show("keys")
			b.await(row("#fullest-keys", "acme") + ".includes(' of 10,000')")
			b.await(row("#fullest-keys", "203.0.113.1") + ".includes(' of 2,000')")
			b.fits(width)
			b.show("rules/month")
			b.await(shows("#rule", "Nearest to the limit") + " && " + shows("#rule", " of 10,000") + " && " + shows("#rule", "globex"))
			b.fits(width)
		}
	}
}

// fits checks that nothing is cut or wider than the page.
func (b *tab) fits(width int64) {
	b.t.Helper()
	if got := eval[int64](b, "document.documentElement.scrollWidth"); got > width {
		b.t.Errorf("the page is %d wide, want %d", got, width)
	}
}
