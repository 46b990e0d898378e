package explain

import (
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

func TestABanIsExplainedByItsDurations(t *testing.T) {
	for text, want := range map[string]string{
		"ban 1m up to 24h after 5/10m": "A key that the other limits refuse 5 times within 10m is out for 1m, the next time for 2m, then for 4m, and so on up to 24h.",
		"ban 1m up to 3m after 2/10m":  "A key that the other limits refuse 2 times within 10m is out for 1m, the next time for 2m, and then for 3m.",
		"ban 2m up to 3m after 2/10m":  "A key that the other limits refuse 2 times within 10m is out for 2m, and each time after that for 3m.",
		"ban 1h after 1/s":             "A key that the other limits refuse 1 time within 1s is out for 1h, each time.",
	} {
		ban, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(ban).Burst; !strings.HasPrefix(got, want+" ") {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
