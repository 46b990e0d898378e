package fetch

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func newTestCrawl(t *testing.T, o Options) *crawl {
	t.Helper()
	o.Total, o.Transport = weir.PerSecond(5000), anyWeb{}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	c, err := newCrawl(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A verdict is asked for beside the frontier: until it comes, other sites have their turns.
func TestAVerdictThatTakesLongHoldsUpNoOtherSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCrawl(t, Options{})
		c.addSeed(Link{URL: "http://slow.example/"})
		c.addSeed(Link{URL: "http://quick.example/"})
		var turns [2]*turn // for robots.txt
		for i := range turns {
			turns[i] = c.next(time.Now()).turn
			time.Sleep(time.Minute)
		}
		for _, turn := range turns {
			c.learn(turn.robots, &robots{})
			c.finish(turn)
		}
		time.Sleep(time.Minute)
		slow, quick := c.next(time.Now()).judge, c.next(time.Now()).judge
		if slow == nil || slow.name != "slow.example" || quick == nil {
			t.Fatalf("verdicts are asked for %+v and %+v", slow, quick)
		}
		if c.judge(quick); c.next(time.Now()).turn.site != quick {
			t.Error("the site with a verdict has no turn")
		}
		if s := c.next(time.Now()); s.turn != nil || s.done {
			t.Errorf("the site without a verdict has %+v", s)
		}
	})
}

// A site with any number of hosts costs the others nothing: each of its URLs takes about as long to add.
func TestASiteMayHaveManyHosts(t *testing.T) {
	c, began := newTestCrawl(t, Options{}), time.Now()
	for i := range 50_000 {
		c.addSeed(Link{URL: fmt.Sprintf("http://h%d.example.com/", i)})
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("50000 hosts took %v", took)
	}
}

// The rules of a site take bounded memory, however many hosts it has, and less when it has no URL.
func TestRulesTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCrawl(t, Options{})
		text := "user-agent: *\n" + strings.Repeat("disallow: /x\n", maxRobots/13)
		for i := range 20 {
			c.addSeed(Link{URL: fmt.Sprintf("http://h%d.example.com/", i)})
			s := c.sites["example.com"]
			c.learn(s.origins[fmt.Sprintf("http://h%d.example.com", i)], parseRobots(text, "x"))
			sum := 0
			for _, o := range s.origins {
				if o.robots != nil {
					sum += o.robots.size
				}
			}
			if sum != s.rules || sum > maxRules || sum == 0 {
				t.Errorf("after %d hosts, the rules take %d bytes, counted as %d; the bound is %d", i+1, sum, s.rules, maxRules)
			}
		}
		c.fed()
		c.dispatch(t.Context())
		if rules := c.sites["example.com"].rules; rules > maxIdleRules {
			t.Errorf("without a URL, the rules take %d bytes, want at most %d", rules, maxIdleRules)
		}
	})
}
