package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/sqltest"
)

// crossings are boundaries between two windows of a quota, and the end of the second, by Python's zoneinfo: of every unit, of a
// week from a weekday, of a day that months lack, and at changes of clocks, where the wall time of the boundary is skipped,
// comes twice, or comes again half an hour later.
var crossings = []struct{ limit, boundary, next string }{
	{"quota 5/year from february 29 in Pacific/Auckland", "2027-02-27T11:00:00Z", "2028-02-28T11:00:00Z"},
	{"quota 5/month from day 31 in Asia/Tokyo", "2027-02-27T15:00:00Z", "2027-03-30T15:00:00Z"},
	{"quota 5/day", "2027-03-11T00:00:00Z", "2027-03-12T00:00:00Z"},
	{"quota 5/week from friday at 18:00 in America/New_York", "2027-03-12T23:00:00Z", "2027-03-19T22:00:00Z"},
	{"quota 5/day at 02:30 in Europe/Paris", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"},
	{"quota 5/quarter in Asia/Kolkata", "2027-03-31T18:30:00Z", "2027-06-30T18:30:00Z"},
	{"quota 5/day at 01:45 in Australia/Lord_Howe", "2027-04-03T14:45:00Z", "2027-04-04T15:15:00Z"},
	{"100/s and quota 5/day at 02:30 in Europe/Paris", "2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"},
	{"quota 5/year", "2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z"},
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	must(t, err)
	return at
}

// quotaDaemon is a daemon with rules that has answered, and the clock of its engine.
type quotaDaemon struct {
	ask func(path, body string) (answer string)
	set func(at time.Time) // the clock of the engine
	lag time.Duration      // between that and the answer
}

// told is an answer.
type told struct {
	Allowed    bool
	Remaining  int
	RetryAfter float64 `json:"retry_after"`
}

// wait returns when a refusal says to come back.
func (a told) wait() time.Duration { return time.Duration(a.RetryAfter * float64(time.Second)) }

// asks asks for units of a key, by /v1/take or peek.
func (d *quotaDaemon) asks(t *testing.T, verb, rule, key string, cost int) (answer told) {
	t.Helper()
	text := d.ask("/v1/"+verb, fmt.Sprintf(`{"rule":%q,"key":%q,"cost":%d}`, rule, key, cost))
	if err := json.Unmarshal([]byte(text), &answer); err != nil || !strings.HasPrefix(text, `{"allowed":`) {
		t.Fatalf("%s: got %s", rule, text)
	}
	return answer
}

// quotaRules are the flags of a rule for each of some limits: q0 and so on.
func quotaRules(limits ...string) (flags []string) {
	for i, limit := range limits {
		flags = append(flags, "--rule", fmt.Sprintf("q%d=%s", i, limit))
	}
	return flags
}

// crossBoundaries uses each quota up before a boundary, and again behind it. The clock only moves forward.
func crossBoundaries(t *testing.T, d *quotaDaemon) {
	t.Helper()
	for i, c := range crossings {
		rule, boundary := fmt.Sprint("q", i), instant(t, c.boundary)
		for _, step := range []struct{ at, end time.Time }{{boundary.Add(-time.Second - d.lag), boundary}, {boundary, instant(t, c.next)}} {
			d.set(step.at)
			d.asks(t, "peek", rule, "another", 1) // on PostgreSQL, the engine learns of a step of the clock with an answer
			if !d.asks(t, "take", rule, "k", 5).Allowed {
				t.Errorf("%s at %v: the whole count is refused", c.limit, step.at)
			}
			more := d.asks(t, "peek", rule, "k", 1) // a refused take would be remembered for a second
			if most := step.end.Sub(step.at); more.Allowed || more.wait() > most || more.wait() < most-d.lag {
				t.Errorf("%s at %v: one more gets %+v, want a refusal for %v", c.limit, step.at, more, most)
			}
		}
	}
}

func limitsOfCrossings() (limits []string) {
	for _, c := range crossings {
		limits = append(limits, c.limit)
	}
	return limits
}

// movable are the engines whose servers have a clock that moves: the flag --engine, and what sets the clock ahead.
var movable = map[string]func(*testing.T) (where string, set func(ahead time.Duration)){
	"redis": func(t *testing.T) (string, func(time.Duration)) {
		server := redistest.StartWithClock(t)
		return "redis://" + server.Addr, server.SetClock
	},
	"postgres": func(t *testing.T) (string, func(time.Duration)) {
		server := sqltest.PostgreSQLWithClock(t, "fsync=off")
		return urlOf(server), server.SetClock
	},
	"mariadb": func(t *testing.T) (string, func(time.Duration)) {
		server := sqltest.MariaDBWithClock(t)
		return "mysql://root@/test?socket=" + server.Socket(), server.SetClock
	},
}

func TestADaemonCrossesTheBoundariesOfQuotasByTheClockOfItsServer(t *testing.T) {
	for name, start := range movable {
		t.Run(name, func(t *testing.T) {
			where, set := start(t)
			url := startDaemon(t, append(quotaRules(limitsOfCrossings()...), "--http", "127.0.0.1:0", "--engine", where, "--deadline", "10s")...)
			crossBoundaries(t, &quotaDaemon{
				ask: func(path, body string) string { return ask(t, url+path, body) },
				set: func(at time.Time) { set(time.Until(at)) },
				lag: time.Minute,
			})
		})
	}
}

// inBubble serves an engine in virtual time, until the test ends. The clock of the engine is that of the bubble.
func inBubble(t *testing.T, engine weir.Engine, rules []*weir.Rule) *quotaDaemon {
	log := slog.New(slog.DiscardHandler)
	s := serverOf(decide.Options{Engine: engine, Rules: rules, Log: log}, &server{})
	return &quotaDaemon{
		ask: func(path, body string) string {
			w := httptest.NewRecorder()
			s.api.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			return w.Body.String()
		},
		set: func(at time.Time) { time.Sleep(time.Until(at)) },
	}
}

// mustRules returns the rules of flags.
func mustRules(t *testing.T, flags []string) []*weir.Rule {
	t.Helper()
	var texts []string
	for i := 1; i < len(flags); i += 2 {
		texts = append(texts, flags[i])
	}
	rules, err := parseRules(texts)
	must(t, err)
	return rules
}

func TestADaemonCrossesTheBoundariesOfQuotasByItsOwnClock(t *testing.T) {
	for _, where := range []string{"memory", "sqlite:" + t.TempDir() + "/weir.db"} {
		name, _, _ := strings.Cut(where, ":")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rules := mustRules(t, quotaRules(limitsOfCrossings()...))
				o := &engineOptions{where: where}
				chosen, err := o.open(context.Background(), slog.New(slog.DiscardHandler), rules, &stateFile{})
				must(t, err)
				defer chosen.close()
				crossBoundaries(t, inBubble(t, chosen.Engine, rules))
			})
		})
	}
}
