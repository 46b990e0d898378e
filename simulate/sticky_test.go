package simulate

import (
	"testing"
	"time"

	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
)

// A daemon that goes takes about 1 in n clients with it. These start afresh once when it goes and once when it returns,
// so that each admits at most one more full limit each time, and the others admit what they would admit anyway.
func TestOnlyClientsThatMoveStartAfresh(t *testing.T) {
	const n, clients, capacity = 8, 400, 5
	p := mustPattern(t, "constant 200/s from 400 clients")
	steady := Scenario{Length: time.Minute, Seed: 1, PerClient: true, Sticky: n}
	changing := steady
	changing.Lose, changing.Return = 20*time.Second, 40*time.Second
	for _, text := range []string{"token bucket 1/m burst 5", "fixed window 5/1h"} {
		candidate, err := replay.ParseCandidate(text)
		if err != nil {
			t.Fatal(err)
		}
		admitted := func(s Scenario) []int64 {
			offers, _, err := p.offers(s.Length, s.Seed)
			if err != nil {
				t.Fatal(err)
			}
			r, err := newRun(p, candidate, &s, clients, len(offers))
			if err == nil {
				err = r.all(offers, &tape.Progress{})
			}
			if err != nil {
				t.Fatal(err)
			}
			return r.ledger.admitted
		}
		before, after, over := admitted(steady), admitted(changing), int64(0)
		for client := range clients {
			more, most := after[client]-before[client], int64(0)
			if daemonOf(uint32(client), n) == n-1 {
				most = 2 * capacity
			}
			if more < 0 || more > most {
				t.Errorf("%s: client %d gets %d units more, want 0 to %d", text, client, more, most)
			}
			over += more
		}
		c := compare(t, "constant 200/s from 400 clients", changing, text)
		if c.Moved < clients/n/2 || c.Moved > clients/n*2 || c.Limits[0].Over != over {
			t.Errorf("%s: %d clients move and %d units are over, want about %d and %d", text, c.Moved, c.Limits[0].Over, clients/n, over)
		}
		if over == 0 {
			t.Errorf("%s: nothing is over, want some", text)
		}
	}
}
