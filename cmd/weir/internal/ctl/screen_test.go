package ctl

import (
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/cmd/weir/internal/top"
)

func TestTheScreenKeepsWhatLaterEventsLeaveOut(t *testing.T) {
	none := 0.0
	s := &screen{lines: 10}
	s.show(&live.Message{At: 1000, All: true, Rules: []live.RuleLine{{Rule: "login", Admitted: 5, Refused: 2, RefusedRate: 0.4, Headroom: &none}, {Rule: "api", Admitted: 1234}},
		Busiest: []top.Count{{Rule: "login", Key: "alice", Count: 7}}, Refused: []top.Count{{Rule: "login", Key: "bob", Count: 2}}})
	got := s.show(&live.Message{At: 1060, Now: live.Now{Version: "v1", Rules: 2, Engine: live.Engine{Kind: "redis", Since: 1000, Why: "lost", Policy: "local 1/2"}, Daemons: &live.Daemons{Seen: 1, Peers: 2},
		Latency: &live.Latency{P50: 0.000004, P99: 0.0155}}, Rules: []live.RuleLine{{Rule: "api", Admitted: 1235}}})
	for _, want := range []string{"engine redis AWAY for 1m, policy local 1/2: lost; 1 daemon seen, shares among 2; half of the decisions within 4µs, 99 % within 15.5ms", "0 %  login", "1,235", "login, alice", "login, bob"} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
	if strings.Index(got, "  login\n") > strings.Index(got, "  api\n") {
		t.Errorf("a rule that refuses nothing comes first:\n%s", got)
	}
	if s.only, s.given, s.by = "api", true, "refused"; strings.Contains(s.show(&live.Message{}), "login") {
		t.Error("another rule is shown")
	}
	if got := s.show(&live.Message{Now: live.Now{Reload: &live.Reload{Number: 2}}}); !strings.Contains(got, "stay in force: 2 problems, which a token with the scope admin shows\n") {
		t.Errorf("a caller without the scope admin sees\n%s", got)
	}
	if s.show(&live.Message{All: true}); len(s.rules) != 0 {
		t.Errorf("rules that have gone are kept: %v", s.rules)
	}
}

func TestTheScreenShowsRulesThatDoNotBindAndTheFullestKeys(t *testing.T) {
	left := 0.05
	s := &screen{lines: 10}
	got := s.show(&live.Message{All: true, Rules: []live.RuleLine{{Rule: "month", Takes: 9500, TakesRate: 3, Headroom: &left}}, Fullest: []top.Full{{Rule: "month", Key: "alice", Used: 9500, Limit: 10000}}})
	for _, want := range []string{"           3            0          9,500              0       5 %  month\n", "fullest  used of the limit, rule, key (sampled)\n        95 %  9,500 of 10,000, month, alice\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
	if s.given, s.by = true, "used"; !strings.Contains(s.show(&live.Message{}), "alice") {
		t.Error("--by used lacks the fullest keys")
	}
}

// A key is a text of callers, which must not move the cursor or look like another line.
func TestHostileTextsStayTextsOnTheScreen(t *testing.T) {
	s := &screen{lines: 10}
	hostile := "\x1b[2J\n\r\u202e\x00\x9b31m"
	got := s.show(&live.Message{All: true, Now: live.Now{Engine: live.Engine{Why: hostile}, Unready: hostile, Reload: &live.Reload{Problems: []string{hostile}}},
		Rules: []live.RuleLine{{Rule: hostile}}, Busiest: []top.Count{{Rule: hostile, Key: hostile, Count: 1}}, Refused: []top.Count{{Rule: "r", Key: hostile, Count: 1}}, Fullest: []top.Full{{Rule: hostile, Key: hostile, Used: 1, Limit: 1}}})
	if strings.ContainsAny(got, "\x1b\r\u202e\x00\u009b") || strings.Contains(got, "\x9b") {
		t.Errorf("got %q", got)
	}
}
