package httplimit_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/httplimit"
)

// Of two quotas it is the one that refuses. Other limits have no such instant, and no more does a cost that never fits.
func TestARefusalByAQuotaTellsWhenItsWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // 1 January 2000
		var cost int64
		for limit, want := range map[string][2]string{
			"q=quota 1/month in Europe/Paris and quota 9/year":                     {"2000-02-01T00:00:00+01:00", ""},
			"q=quota 1/day and quota 1/month from day 31 at 06:30 in Asia/Kolkata": {"2000-01-31T06:30:00+05:30", ""},
			"q=1/m": {"", ""},
		} {
			refused := httplimit.Refusal{}
			h := wrap(t, httplimit.Options{
				Rules:  []httplimit.Rule{{Limit: limit, Cost: func(*http.Request) int64 { return cost }}},
				Refuse: func(w http.ResponseWriter, r *http.Request, f httplimit.Refusal) { refused = f; f.Write(w, r) },
			}, ok)
			for i, c := range []int64{1, 1, 2} {
				cost = c
				body := get(h, alice).Body.String()
				told := ""
				if i > 0 {
					told = want[i-1]
				}
				if !refused.ResetAt.IsZero() != (told != "") || told != "" && refused.ResetAt.Format(time.RFC3339) != told {
					t.Errorf("%s, request %d: ResetAt is %v, want %q", limit, i, refused.ResetAt, told)
				}
				if strings.Contains(body, `"reset_at":"`+told+`"`) != (told != "") {
					t.Errorf("%s, request %d: the body is %s, want reset_at %q", limit, i, body, told)
				}
			}
		}
	})
}
