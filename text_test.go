package weir_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // as in all tests of this package

	"github.com/weirflow/weir"
)

func TestLimitTextParsesAndPrintsBack(t *testing.T) {
	second10 := weir.PerSecond(10)
	for _, c := range []struct {
		text, printed string
		limit         weir.Limit
	}{
		{"token bucket 10/s", "", weir.TokenBucket{Rate: second10}},
		{"token bucket 10/s burst 20", "", weir.TokenBucket{Rate: second10, Burst: 20}},
		{"token bucket 60/m", "", weir.TokenBucket{Rate: weir.PerMinute(60)}},
		{"token bucket 1/30d burst 9007199254740992", "", weir.TokenBucket{Rate: weir.Per(1, 30*24*time.Hour), Burst: weir.MaxCount}},
		{"token bucket 1000000000/s", "", weir.TokenBucket{Rate: weir.PerSecond(weir.MaxRate)}},
		{"leaky bucket 5/s", "", weir.LeakyBucket{Rate: weir.PerSecond(5)}},
		{"leaky bucket 5/s queue 10 nodelay 3", "", weir.LeakyBucket{Rate: weir.PerSecond(5), Queue: 10, NoDelay: 3}},
		{"leaky bucket 5/s queue 0 nodelay 0", "leaky bucket 5/s", weir.LeakyBucket{Rate: weir.PerSecond(5)}},
		{"fixed window 100/1m", "fixed window 100/m", weir.FixedWindow{Rate: weir.PerMinute(100)}},
		{"fixed window 7/2w", "", weir.FixedWindow{Rate: weir.Per(7, 14*24*time.Hour)}},
		{"first window 100/1m", "first window 100/m", weir.FirstWindow{Rate: weir.PerMinute(100)}},
		{"first window 7/2w", "", weir.FirstWindow{Rate: weir.Per(7, 14*24*time.Hour)}},
		{"sliding window 1000/h", "", weir.SlidingWindow{Rate: weir.PerHour(1000)}},
		{"sliding window 1/1h30m", "", weir.SlidingWindow{Rate: weir.Per(1, 90*time.Minute)}},
		{"sliding window 1/1h0m30s", "", weir.SlidingWindow{Rate: weir.Per(1, time.Hour+30*time.Second)}},
		{"sliding window 3/366d", "", weir.SlidingWindow{Rate: weir.Per(3, weir.MaxPeriod)}},
		{"sliding log 5/10s gap 1s count denied", "", weir.SlidingLog{Rate: weir.Per(5, 10*time.Second), Gap: time.Second, CountDenied: true}},
		{"sliding log 5/10s count denied", "", weir.SlidingLog{Rate: weir.Per(5, 10*time.Second), CountDenied: true}},
		{"sliding log 5/10s gap 1500us", "sliding log 5/10s gap 1.5ms", weir.SlidingLog{Rate: weir.Per(5, 10*time.Second), Gap: 1500 * time.Microsecond}},
		{"rate gate 2/s", "", weir.RateGate{Rate: weir.PerSecond(2)}},
		{"cycle 50/500ms", "", weir.Cycle{Rate: weir.Per(50, 500*time.Millisecond)}},
		{"quota 1000000/month", "", weir.Quota{Count: 1000000, Unit: weir.Month}},
		{"quota 500/day in Europe/Paris", "", weir.Quota{Count: 500, Unit: weir.Day, Zone: "Europe/Paris"}},
		{"quota 2000/week from tuesday at 06:00 in America/New_York", "", weir.Quota{Count: 2000, Unit: weir.Week, Day: 2, At: 6 * time.Hour, Zone: "America/New_York"}},
		{"quota 50000/month from day 15", "", weir.Quota{Count: 50000, Unit: weir.Month, Day: 15}},
		{"quota 9/quarter from day 31 at 23:59", "", weir.Quota{Count: 9, Unit: weir.Quarter, Day: 31, At: 23*time.Hour + 59*time.Minute}},
		{"quota 10000/year from march 1", "", weir.Quota{Count: 10000, Unit: weir.Year, Month: time.March, Day: 1}},
		{"quota 1/year from february 29", "", weir.Quota{Count: 1, Unit: weir.Year, Month: time.February, Day: 29}},
		{"concurrency 20 lease 30s", "", weir.Concurrency{Slots: 20, Lease: 30 * time.Second}},
		{"bursty 5/s over 1s", "", weir.Bursty{Rate: weir.PerSecond(5), Over: time.Second}},
		{"warm up 5/s over 4s cold 3", "", weir.WarmUp{Rate: weir.PerSecond(5), Over: 4 * time.Second, Cold: 3}},
		{" \r\nfixed \t window   2/us \n", "fixed window 2/us", weir.FixedWindow{Rate: weir.Per(2, time.Microsecond)}},
		{"fixed window 1/ns", "", weir.FixedWindow{Rate: weir.Per(1, 1)}},
		{"fixed window 90/1.5s", "", weir.FixedWindow{Rate: weir.Per(90, 1500*time.Millisecond)}},
		{"fixed window 90/24h", "fixed window 90/d", weir.FixedWindow{Rate: weir.PerDay(90)}},
		{"fixed window 90/7d", "fixed window 90/w", weir.FixedWindow{Rate: weir.Per(90, 7*24*time.Hour)}},
		{"60/m", "token bucket 60/m", weir.TokenBucket{Rate: weir.PerMinute(60)}},
		{" 5/1m30s\n", "token bucket 5/1m30s", weir.TokenBucket{Rate: weir.Per(5, 90*time.Second)}},
		{"60/m burst 5", "token bucket 60/m burst 5", weir.TokenBucket{Rate: weir.PerMinute(60), Burst: 5}},
		{"fixed window 007/s", "fixed window 7/s", weir.FixedWindow{Rate: weir.PerSecond(7)}},
	} {
		if c.printed == "" {
			c.printed = c.text
		}
		parsed, err := weir.ParseLimit(c.text)
		if err != nil || parsed != c.limit {
			t.Errorf("ParseLimit(%q): got %#v and error %v, want %#v", c.text, parsed, err, c.limit)
			continue
		}
		if got := parsed.String(); got != c.printed {
			t.Errorf("ParseLimit(%q).String(): got %q, want %q", c.text, got, c.printed)
		}
		if got, err := parsed.MarshalText(); string(got) != c.printed || err != nil {
			t.Errorf("ParseLimit(%q).MarshalText(): got %q and error %v, want %q", c.text, got, err, c.printed)
		}
		if again, err := weir.ParseLimit(c.printed); err != nil || again != parsed {
			t.Errorf("ParseLimit(%q), which was printed: got %#v and error %v, want %#v", c.printed, again, err, parsed)
		}
	}
}

// These words may begin a limit.
const (
	inRules = "a rate such as 10/s or a limit (token bucket, leaky bucket, fixed window, first window, sliding window, sliding log, rate gate, cycle, quota, concurrency, ban, unlimited, deny all"
	ofRule  = inRules + ")" // rules refuse the other two
	aLimit  = inRules + ", bursty, warm up, nginx limit_req)"
)

var badLimits = []struct{ text, want string }{
	{"", `weir: "" ends where ` + aLimit + ` should follow`},
	{"   ", `weir: "   " ends where ` + aLimit + ` should follow`},
	{"token", `weir: "token" ends where "bucket" should follow`},
	{"token buckets 10/s", `weir: "token buckets 10/s": unexpected "buckets" at byte 7, want "bucket"; did you mean "token bucket 10/s"?`},
	{"Token bucket 10/s", `weir: "Token bucket 10/s": unexpected "Token" at byte 1, want a rate such as 10/s or a limit; did you mean "token bucket 10/s"?`},
	{"sliding", `weir: "sliding" ends where "window" or "log" should follow`},
	{"sliding door 1/s", `weir: "sliding door 1/s": unexpected "door" at byte 9, want "window" or "log"`},
	{"token bucket", `weir: "token bucket" ends where a rate such as 10/s, 5/10s or 1/1h30m should follow; did you mean "token bucket 10/s"?`},
	{"token bucket 10", `weir: "token bucket 10": unexpected "10" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m; did you mean "token bucket 10/s"?`},
	{"token bucket 10/", `weir: "token bucket 10/": unexpected "10/" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"token bucket /s", `weir: "token bucket /s": unexpected "/s" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"token bucket 10/fortnight", `weir: "token bucket 10/fortnight": unexpected "10/fortnight" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"token bucket -1/s", `weir: "token bucket -1/s": unexpected "-1/s" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m; did you mean "token bucket 1/s"?`},
	{"token bucket +1/s", `weir: "token bucket +1/s": unexpected "+1/s" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"token bucket 1.5/s", `weir: "token bucket 1.5/s": unexpected "1.5/s" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"token bucket 1e3/s", `weir: "token bucket 1e3/s": unexpected "1e3/s" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"token bucket 9223372036854775808/s", `weir: "token bucket 9223372036854775808/s": unexpected "9223372036854775808/s" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"token bucket 10/s burst", `weir: "token bucket 10/s burst" ends where a whole number should follow`},
	{"token bucket 10/s burst many", `weir: "token bucket 10/s burst many": unexpected "many" at byte 25, want a whole number`},
	{"token bucket 10/s burst 0", `weir: "token bucket 10/s burst 0": unexpected "0" at byte 25, want a burst of at least 1`},
	{"token bucket 10/s burst 20 burst 30", `weir: "token bucket 10/s burst 20 burst 30": unexpected "burst" at byte 28, want "and" or the end`},
	{"token bucket 10/s queue 5", `weir: "token bucket 10/s queue 5": unexpected "queue" at byte 19, want "burst", "and" or the end`},
	{"fixed window 10/s burst 20", `weir: "fixed window 10/s burst 20": unexpected "burst" at byte 19, want "and" or the end`},
	{"leaky bucket 5/s queue 1 nodelay", `weir: "leaky bucket 5/s queue 1 nodelay" ends where a whole number should follow`},
	{"leaky bucket 5/s nodelay 1 queue 1", `weir: "leaky bucket 5/s nodelay 1 queue 1": unexpected "queue" at byte 28, want "and" or the end`},
	{"sliding log 5/s gap", `weir: "sliding log 5/s gap" ends where a duration such as 500ms, 10s or 30d should follow`},
	{"sliding log 5/s gap soon", `weir: "sliding log 5/s gap soon": unexpected "soon" at byte 21, want a duration such as 500ms, 10s or 30d`},
	{"sliding log 5/s count", `weir: "sliding log 5/s count" ends where "denied" should follow`},
	{"sliding log 5/s count denied gap 1ms", `weir: "sliding log 5/s count denied gap 1ms": unexpected "gap" at byte 30, want "and" or the end`},
	{"fixed window 10/s and", `weir: "fixed window 10/s and" ends where ` + aLimit + ` should follow`},
	{"fixed window 10/s and fixed window 20/m", `weir: "fixed window 10/s and fixed window 20/m": unexpected "and" at byte 19, want one limit`},
	{"5/s and 60/m and 9/h", `weir: "5/s and 60/m and 9/h": unexpected "and" at byte 5, want one limit`},
	{"60/m\tand 5/s", `weir: "60/m\tand 5/s": unexpected "and" at byte 6, want one limit`},
	{"fixed window 10/s or fixed window 20/m", `weir: "fixed window 10/s or fixed window 20/m": unexpected "or" at byte 19, want "and" or the end`},
	{"fixed window 0/s", `weir: fixed window 0/s: rate count 0 is not within 1 and 9007199254740992`},
	{"fixed window 1/0s", `weir: fixed window 1/0s: period 0s is not within 1ns and 366 days`},
	{"fixed window 1/-1s", `weir: fixed window 1/-1s: period -1s is not within 1ns and 366 days`},
	{"fixed window 1/367d", `weir: fixed window 1/367d: period 367 days is not within 1ns and 366 days`},
	{"fixed window 1/99999999999w", `weir: "fixed window 1/99999999999w": unexpected "1/99999999999w" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"fixed window 1/8796h30m", `weir: fixed window 1/8796h30m: period 366 days 12h30m is not within 1ns and 366 days`},
	{"sliding log 1/2d gap 49h", `weir: sliding log 1/2d gap 49h: gap 2 days 1h is not within 0s and the period`},
	{"sliding log 1/12h gap 1d", `weir: sliding log 1/12h gap 1d: gap 1 day is not within 0s and the period`},
	{"100/month", `weir: "100/month": unexpected "100/month" at byte 1, want a rate such as 100/30d, any 30 days; did you mean "quota 100/month"?`},
	{"fixed window 9/year in Asia/Tokyo", `weir: "fixed window 9/year in Asia/Tokyo": unexpected "9/year" at byte 14, want a rate such as 9/365d, any 365 days; did you mean "quota 9/year in Asia/Tokyo"?`},
	{"500 calls a day in Asia/Tokyo", `weir: "500 calls a day in Asia/Tokyo": unexpected "500" at byte 1, want a rate such as 10/s or a limit; did you mean "quota 500/day in Asia/Tokyo"?`},
	{"quota", `weir: "quota" ends where a count a day, week, month, quarter or year, such as 1000/month should follow`},
	{"quota 5/d", `weir: "quota 5/d": unexpected "5/d" at byte 7, want a count a day, week, month, quarter or year, such as 1000/month`},
	{"quota 5/day from monday", `weir: "quota 5/day from monday": unexpected "from" at byte 13, want "at", "in", "and" or the end`},
	{"quota 5/week from day 3", `weir: "quota 5/week from day 3": unexpected "day" at byte 19, want a weekday such as monday`},
	{"quota 5/month from monday", `weir: "quota 5/month from monday": unexpected "monday" at byte 20, want a day such as day 15`},
	{"quota 5/month from day 32", `weir: "quota 5/month from day 32": unexpected "32" at byte 24, want the number of a day, from 1 to 31`},
	{"quota 5/year from day 3", `weir: "quota 5/year from day 3": unexpected "day" at byte 19, want a month and a day, such as march 1`},
	{"quota 5/day at 6:00", `weir: "quota 5/day at 6:00": unexpected "6:00" at byte 16, want a time of day such as 06:00`},
	{"quota 5/day at 24:00", `weir: "quota 5/day at 24:00": unexpected "24:00" at byte 16, want a time of day such as 06:00`},
	{"quota 5/day in", `weir: "quota 5/day in" ends where a zone such as Europe/Paris should follow`},
	{"quota 5/day in UTC at 06:00", `weir: "quota 5/day in UTC at 06:00": unexpected "at" at byte 20, want "and" or the end`},
	{"quota 0/day", `weir: quota 0/day: count 0 is not within 1 and 9007199254740992`},
	{"quota 1/year from april 31", `weir: quota 1/year from april 31: day 31 is not within 1 and 30`},
	{"quota 1/day in Europe/Pariz", `weir: quota 1/day in Europe/Pariz: zone "Europe/Pariz" is not a zone that this program knows; a program without zone data needs import _ "time/tzdata"`},
	{"quota 1/day in Local", `weir: quota 1/day in Local: zone "Local" is not the IANA name of a place, such as Europe/Paris`},
	{"60", `weir: "60": unexpected "60" at byte 1, want a rate such as 10/s or a limit; did you mean "60/s"?`},
	{"60/", `weir: "60/": unexpected "60/" at byte 1, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"60/fortnight", `weir: "60/fortnight": unexpected "60/fortnight" at byte 1, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"60/m 5/s", `weir: "60/m 5/s": unexpected "5/s" at byte 6, want "burst", "and" or the end`},
	{"0/s", `weir: token bucket 0/s: rate count 0 is not within 1 and 9007199254740992`},
	{"fixed window 2/ns", `weir: fixed window 2/ns: rate is above 1000000000/s`},
	{"fixed window 1000000001/s", `weir: fixed window 1000000001/s: rate is above 1000000000/s`},
	{"fixed window 9007199254740993/366d", `weir: fixed window 9007199254740993/366d: rate count 9007199254740993 is not within 1 and 9007199254740992`},
	{"token bucket 1/s burst 9007199254740993", `weir: token bucket 1/s burst 9007199254740993: burst 9007199254740993 is not within 0 and 9007199254740992`},
	{"leaky bucket 1/s queue 9007199254740992", `weir: leaky bucket 1/s queue 9007199254740992: queue 9007199254740992 is not within 0 and 9007199254740991`},
	{"sliding log 5/10s gap 11s", `weir: sliding log 5/10s gap 11s: gap 11s is not within 0s and the period`},
	{"ban 1m", `weir: "ban 1m" ends where after 5/10m, the refusals that begin it should follow`},
	{"ban 1m up 2m after 5/10m", `weir: "ban 1m up 2m after 5/10m": unexpected "2m" at byte 11, want "to"`},
	{"ban 1m after 5", `weir: "ban 1m after 5": unexpected "5" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m`},
	{"ban 0s after 5/10m", `weir: ban 0s after 5/10m: for 0s is not within 1ns and 366 days`},
	{"ban 1m up to 30s after 101/10m", "weir: ban 1m up to 30s after 101/10m: after 101 is not within 1 and 100\nweir: ban 1m up to 30s after 101/10m: up to 30s is not within 1m and 366 days"},
	{"sliding log 5/10s gap -1s", `weir: sliding log 5/10s gap -1s: gap -1s is not within 0s and the period`},
	{"fixed window 0/367d", "weir: fixed window 0/367d: rate count 0 is not within 1 and 9007199254740992\nweir: fixed window 0/367d: period 367 days is not within 1ns and 366 days"},
	{"fixed window 10/s\x00", `weir: "fixed window 10/s\x00": unexpected "10/s\x00" at byte 14, want a rate such as 10/s, 5/10s or 1/1h30m; did you mean "fixed window 10/s"?`},
}

func TestBadLimitTextIsPointedAt(t *testing.T) {
	for _, c := range badLimits {
		limit, err := weir.ParseLimit(c.text)
		if err == nil || err.Error() != c.want {
			t.Errorf("ParseLimit(%q):\ngot  %v\nwant %s", c.text, err, c.want)
		}
		if limit != nil {
			t.Errorf("ParseLimit(%q): got limit %#v beside the error, want nil", c.text, limit)
		}
		if !isA[*weir.SyntaxError](err) && !errors.Is(err, weir.ErrLimit) {
			t.Errorf("ParseLimit(%q): got error %#v, want a *SyntaxError or a *LimitError", c.text, err)
		}
	}
}

func TestRuleTextParsesAndPrintsBack(t *testing.T) {
	const text = "login=token bucket 5/m and fixed window 100/d and sliding log 9/h gap 10s"
	rule, err := weir.ParseRule(" login =  5/m and fixed window 100/24h and sliding log 9/60m gap 10s ")
	if err != nil {
		t.Fatal(err)
	}
	if got := rule.String(); got != text || rule.Name() != "login" || len(rule.Limits()) != 3 {
		t.Errorf("got %q with name %q and %d limits, want %q", got, rule.Name(), len(rule.Limits()), text)
	}
}

func TestBadRuleTextIsPointedAt(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `weir: "" ends where '=' and a limit should follow`},
		{"login", `weir: "login" ends where '=' and a limit should follow`},
		{"login=", `weir: "login=" ends where ` + ofRule + ` should follow`},
		{"login=token bukket 5/m", `weir: "login=token bukket 5/m": unexpected "bukket" at byte 13, want "bucket"; did you mean "login=token bucket 5/m"?`},
		{"login=5/m and bukket", `weir: "login=5/m and bukket": unexpected "bukket" at byte 15, want ` + ofRule},
		{"login=0/m", `weir: rule "login": token bucket 0/m: rate count 0 is not within 1 and 9007199254740992`},
		{" login = 5/m and fixed window 0/367d", "weir: rule \"login\": fixed window 0/367d: rate count 0 is not within 1 and 9007199254740992\nweir: rule \"login\": fixed window 0/367d: period 367 days is not within 1ns and 366 days"},
		{"login=warm up 5/s over 4s", `weir: rule "login": warm up 5/s over 4s: rule cannot hold it: an idle key differs from a new one, so keys could never be evicted`},
		{"=fixed window 1/s", `weir: rule "": name is not 1 to 256 bytes without '=' and NUL`},
		{"a\x00b=fixed window 1/s", `weir: rule "a\x00b": name is not 1 to 256 bytes without '=' and NUL`},
		{"a=b=fixed window 1/s", `weir: "a=b=fixed window 1/s": unexpected "b=fixed" at byte 3, want ` + ofRule},
		{"login=leaky bucket 1/s and fixed window 1/s", `weir: rule "login": leaky bucket 1/s: rule cannot combine it with other limits`},
		{"login=fixed window 1/s and sliding log 1/s count denied", `weir: rule "login": sliding log 1/s count denied: rule cannot combine it with other limits`},
	} {
		rule, err := weir.ParseRule(c.text)
		if err == nil || err.Error() != c.want || rule != nil {
			t.Errorf("ParseRule(%q):\ngot  %v and %v\nwant %s", c.text, rule, err, c.want)
		}
	}
}

func TestRateTextKeepsCountAndPeriodAsGiven(t *testing.T) {
	for text, want := range map[string]weir.Rate{
		"60/m":     weir.PerMinute(60),
		"1/s":      weir.PerSecond(1),
		"5/10s":    weir.Per(5, 10*time.Second),
		"1/1h30m":  weir.Per(1, 90*time.Minute),
		"1000/h":   weir.PerHour(1000),
		"2/d":      weir.PerDay(2),
		"1/3w":     weir.Per(1, 21*24*time.Hour),
		"9/1.5us":  weir.Per(9, 1500*time.Nanosecond),
		"4/250ns":  weir.Per(4, 250),
		"100/20ms": weir.Per(100, 20*time.Millisecond),
	} {
		var rate weir.Rate
		if err := rate.UnmarshalText([]byte(text)); err != nil || rate != want {
			t.Errorf("rate %q: got %#v and error %v, want %#v", text, rate, err, want)
		}
		if got := rate.String(); got != text {
			t.Errorf("rate %#v: printed %q, want %q", rate, got, text)
		}
	}
}

// FuzzParseLimit: for every text the parser returns a limit or one of its own errors. A limit prints as text that
// parses to the same limit.
func FuzzParseLimit(f *testing.F) {
	for _, c := range badLimits {
		f.Add(c.text)
	}
	for _, text := range []string{
		"60/m", "5/10s burst 7", "1/1h30m and 5/s", "token bucket 10/s burst 20", "leaky bucket 5/s queue 10 nodelay 3", "fixed window 100/1m", "sliding window 1/1h30m",
		"sliding log 5/10s gap 1s count denied", "rate gate 2/s", "cycle 50/500ms", "concurrency 20 lease 30s", "bursty 5/s over 1s", "warm up 5/s over 4s cold 3",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			if !isA[*weir.SyntaxError](err) && !errors.Is(err, weir.ErrLimit) || limit != nil {
				t.Fatalf("ParseLimit(%q): got %v and error %#v, want nil and a *SyntaxError or a *LimitError", text, limit, err)
			}
			if syntax, ok := errors.AsType[*weir.SyntaxError](err); ok && syntax.Meant != "" {
				if _, err := weir.ParseLimit(syntax.Meant); err != nil {
					t.Fatalf("ParseLimit(%q) means %q, which cannot be read: %v", text, syntax.Meant, err)
				}
			}
			return
		}
		if err := validate(limit); err != nil {
			t.Fatalf("ParseLimit(%q): got %v, which is not valid: %v", text, limit, err)
		}
		again, err := weir.ParseLimit(limit.String())
		if err != nil || again != limit {
			t.Fatalf("ParseLimit(%q) prints as %q, which parses to %#v and error %v, want %#v", text, limit, again, err, limit)
		}
	})
}

// meantLimits are texts of other limiters, of English and of haste, and what their errors suggest.
var meantLimits = map[string]string{
	"100/minute": "100/m", "5/sec": "5/s", "10/hour": "10/h", "5-M": "5/m", "1000-H": "1000/h", "10/S": "10/s",
	"100 per minute": "100/m", "5 requests per 10 seconds": "5/10s", "10 req/s": "10/s", "100rpm": "100/m", "20 rps": "20/s",
	"1000 a day": "1000/d", "100 every 15 min": "100/15m", "1 per 1h30m": "1/1h30m", "5 / s": "5/s", "60": "60/s",
	"10r/s burst=20": "10/s burst 20", "5/m,100/d": "5/m and 100/d", "10/second;1000/hour": "10/s and 1000/h",
	"sliding-window 10/m": "sliding window 10/m", "fixed_window": "fixed window 10/s", "Fixed Window 5/m": "fixed window 5/m",
	"token-bucket 10/s": "token bucket 10/s", "TokenBucket 10/s burst=20": "token bucket 10/s burst 20", "token bucket 10": "token bucket 10/s",
	"tokn buckets 10/s brust 20": "token bucket 10/s burst 20", "leaky bukket 5/s queue: 10": "leaky bucket 5/s queue 10",
	"GCRA 5/s": "token bucket 5/s", "RateGate 2/s": "rate gate 2/s", "rategate 2/s": "rate gate 2/s",
	"SlidingLog 5/10s gap=1s": "sliding log 5/10s gap 1s", "sliding log 5/10s gap 2 seconds": "sliding log 5/10s gap 2s",
	"rolling window 5 per 2 min": "sliding window 5/2m",
	"guava 5":                    "bursty 5/s over 1s", "SmoothBursty 5": "bursty 5/s over 1s", "bursty 5/s": "bursty 5/s over 1s",
	"SmoothWarmingUp 5/s over 4s": "warm up 5/s over 4s", "warmup 5/s over=4s": "warm up 5/s over 4s",
	"concurrency=20": "concurrency 20", "Semaphore 20": "concurrency 20", "concurency 20 lease=30sec": "concurrency 20 lease 30s",

	"sliding door 1/s": "", "60/fortnight": "", "token bucket 1.5/s": "", "0/minute": "", "": "", "!": "", "/": "",
	"token bucket 10/s queue 5": "", strings.Repeat("5/sec,", 50): "",
}

func TestErrorsOfBrokenTextsNameTheTextThatWasMeant(t *testing.T) {
	for text, want := range meantLimits {
		_, err := weir.ParseLimits(text)
		syntax, ok := errors.AsType[*weir.SyntaxError](err)
		if !ok || syntax.Meant != want {
			t.Errorf("%q: got %v, want a *SyntaxError that means %q", text, err, want)
			continue
		}
		if want == "" {
			continue
		}
		if _, err := weir.ParseLimits(want); err != nil {
			t.Errorf("%q means %q, which cannot be read: %v", text, want, err)
		}
		if !strings.HasSuffix(err.Error(), `; did you mean "`+want+`"?`) {
			t.Errorf("%q: got %q, want an error that ends with the text %q", text, err, want)
		}
	}
}

// An error offers only what the same function reads: one limit, a rate, a rule.
func TestTheTextThatWasMeantSuitsTheFunction(t *testing.T) {
	limit := func(text string) error { _, err := weir.ParseLimit(text); return err }
	rate := func(text string) error { _, err := weir.ParseRate(text); return err }
	rule := func(text string) error { _, err := weir.ParseRule(text); return err }
	for _, c := range []struct {
		parse      func(string) error
		text, want string
	}{
		{limit, "5/m,100/d", ""},
		{limit, "5/minute", "5/m"},
		{rate, "token-bucket 5/s", ""},
		{rate, "5/minute", "5/m"},
		{rate, "1 per 90 seconds", "1/90s"},
		{rule, "login=TokenBucket 5/m burst=5", "login=token bucket 5/m burst 5"},
		{rule, " login = 5/m,100/d", "login=5/m and 100/d"},
		{rule, "60/m", "name=60/m"},
		{rule, "concurrency=20", "name=concurrency 20"},
		{rule, "TokenBucket 10/s burst=20", "name=token bucket 10/s burst 20"},
		{rule, "login=guava 5", ""},
		{rule, "login=", ""},
	} {
		syntax, ok := errors.AsType[*weir.SyntaxError](c.parse(c.text))
		if !ok || syntax.Meant != c.want {
			t.Errorf("%q: got %+v, want a *SyntaxError that means %q", c.text, syntax, c.want)
		} else if err := c.parse(c.want); c.want != "" && err != nil {
			t.Errorf("%q means %q, which cannot be read: %v", c.text, c.want, err)
		}
	}
}
