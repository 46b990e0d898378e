package peers

import (
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/redistest"
)

// The number is the largest of the kept looks, never 0. Looks that fail are none, so an outage keeps it.
func TestTheLargestNumberOfTheKeptLooksHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 3))
	for range 50 {
		var c count
		if peers, seen := c.number(); peers != 1 || seen != 0 {
			t.Fatalf("before the first look there are %d peers, and %d seen", peers, seen)
		}
		var looks []int
		for range 3 * keptLooks {
			n := r.IntN(6)
			looks = append(looks, max(n, 1))
			_, now := c.add(n)
			want := 1
			for _, seen := range looks[max(len(looks)-keptLooks, 0):] {
				want = max(want, seen)
			}
			if peers, seen := c.number(); peers != want || now != want || seen != looks[len(looks)-1] {
				t.Fatalf("after %d looks there are %d peers, %d were seen, want %d and %d", len(looks), peers, seen, want, looks[len(looks)-1])
			}
		}
	}
}

func TestDaemonsOnOneServerSeeOneAnother(t *testing.T) {
	server := redistest.Start(t)
	log := &strings.Builder{}
	open := func(path string) *Counter {
		c, err := Open("redis://"+server.Addr+path, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	look := func(c *Counter, seen, peers int) {
		t.Helper()
		if err := c.Announce(t.Context()); err != nil || c.Seen() != seen || c.Peers() != peers {
			t.Errorf("sees %d of %d, %v; want %d of %d", c.Seen(), c.Peers(), err, seen, peers)
		}
	}
	one, two, other := open(""), open(""), open("?prefix=other")
	look(one, 1, 1)
	look(two, 2, 2)
	look(one, 2, 2)
	look(other, 1, 1)
	server.Do("HSET", "weir:daemons", "crashed", "1000") // long ago
	look(one, 2, 2)
	two.Close()
	look(one, 1, 2) // for ten minutes
	if !strings.Contains(log.String(), "another number of daemons shares the engine") {
		t.Errorf("the log says %q", log)
	}
	server.Do("FLUSHALL")
	look(one, 1, 2)
	server.Kill()
	if err := one.Announce(t.Context()); err == nil || Refused(err) || one.Peers() != 2 {
		t.Errorf("without a server there are %d peers, %v", one.Peers(), err)
	}
}

func TestAnAnswerThatNoWaitMendsIsARefusal(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "narrow", "on", ">secret", "~*", "+@all", "-hset")
	c, err := Open("redis://narrow:secret@"+server.Addr, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Announce(t.Context()); !Refused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
}
