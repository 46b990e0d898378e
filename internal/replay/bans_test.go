package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/replay"
)

// logOf returns a log of requests: of an address, at a time of one day, that many.
func logOf(requests ...struct {
	ip, at string
	n      int
}) []byte {
	var b strings.Builder
	for _, r := range requests {
		b.WriteString(strings.Repeat(fmt.Sprintf("%s - - [17/May/2015:%s +0000] \"GET / HTTP/1.1\" 200 5\n", r.ip, r.at), r.n))
	}
	return []byte(b.String())
}

type requests = struct {
	ip, at string
	n      int
}

// The report of a ban says who would have been banned and for how long, who then stayed away, and whom one burst alone would have
// banned.
func TestAReplayTellsWhomABanWouldHit(t *testing.T) {
	log := []requests{
		{"10.0.0.1", "10:00:00", 12}, // a page that asks for twelve things at once: two are admitted, five strike
		{"10.0.0.2", "10:00:00", 3}, {"10.0.0.2", "10:01:00", 3}, {"10.0.0.2", "10:02:00", 3}, {"10.0.0.2", "10:03:00", 3},
		{"10.0.0.2", "10:04:00", 3},  // the fifth strike within five minutes
		{"10.0.0.2", "10:10:00", 1},  // which knocks,
		{"10.0.0.2", "10:20:00", 12}, // and is banned again, for twice as long
		{"10.0.0.3", "10:00:30", 7},
		{"10.0.0.4", "10:00:30", 6}, // four strikes
	}
	report := replayOf(t, "ip", replay.Options{Top: 2}, logOf(log...), "fixed window 2/1m and ban 10m up to 40m after 5/5m", "fixed window 2/1m")
	got := report.Limits[0].Bans
	if got == nil || got.Keys != 3 || got.Begun != 4 || got.Refused != 5+1+5 || got.Gone != 2 || got.OneBurst != 2 || len(got.Worst) != 2 {
		t.Fatalf("got %+v, want 3 keys, 4 bans and 11 refusals; 2 keys that stay away and 2 that one burst bans", got)
	}
	day := time.Date(2015, 5, 17, 0, 0, 0, 0, time.UTC)
	for i, want := range []replay.BannedKey{
		{Key: "10.0.0.2", Begun: 2, Seconds: 1800, Longest: 1200, Refused: 6, First: day.Add(10*time.Hour + 4*time.Minute)},
		{Key: "10.0.0.1", Begun: 1, Seconds: 600, Longest: 600, Refused: 5, First: day.Add(10 * time.Hour), Gone: true, Burst: true},
	} {
		if got.Worst[i] != want {
			t.Errorf("key %d: got %+v, want %+v", i, got.Worst[i], want)
		}
	}
	if without := report.Limits[1]; without.Bans != nil || without.Refused != 10+5+10+5+4 {
		t.Errorf("without a ban: got %+v", without)
	}
}
